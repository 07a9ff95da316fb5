"""A collection moves to another recogniser: everybody comes along, whatever happens meanwhile."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sameface.model.errors import CollectionNotFound, ModelMismatch
from sameface.model.gallery.gallery import Gallery
from sameface.model.photo.align import align_face
from sameface.model.photo.embed import Embedder
from sameface.model.photo.image import ImageLimits, decode_image
from sameface.model.store.drafts import list_drafts
from sameface.model.store.records import Collection, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from sameface.model.upkeep import reembed as reembed_module
from sameface.model.upkeep.reembed import Reembedder
from tests.model.people import everybody
from tests.model.upkeep.reembed.moved import PEOPLE, draw_crop, expect_embeddings_of, without_embeddings
from tests.postgres_server import gallery_in


def test_everybody_moves_with_everything_but_the_embeddings(
    store: Store, staff: Collection, move: Callable[..., Collection], embedders: dict[str, Embedder]
) -> None:
    before = without_embeddings(store)
    moved = move()
    assert without_embeddings(store) == before
    expect_embeddings_of(store, embedders["new"])
    assert (moved.bundle, moved.calibration, moved.created_at) == ("new", None, staff.created_at)
    assert (moved.people, moved.faces) == (PEOPLE + 1, 2 * PEOPLE)
    assert moved.key != staff.key
    assert list_drafts(store) == []


@pytest.mark.usefixtures("staff")
def test_the_new_recogniser_is_closed_at_the_end(
    move: Callable[..., Collection], embedders: dict[str, Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = [], Embedder.close
    monkeypatch.setattr(Embedder, "close", lambda self: (closed.append(self.identity), close(self)))
    move()
    assert closed == [embedders["new"].identity]


def test_searches_go_on_with_the_new_recogniser_and_the_old_one_is_told(
    tmp_path: Path, staff: Collection, move: Callable[..., Collection], embedders: dict[str, Embedder]
) -> None:
    with closing(Gallery(gallery_in(tmp_path), embedders["old"].bundle)) as old:
        old.indexes.renew(staff)
        move()
        with pytest.raises(ModelMismatch, match="new"):
            old.get_collection("staff")
    assert not list((tmp_path / "indexes").glob("*.index"))  # the old embeddings are nowhere
    with closing(Gallery(gallery_in(tmp_path), embedders["new"].bundle)) as new:
        [embedding] = embedders["new"].embed([draw_crop(7)])
        [found] = new.search(new.get_collection("staff"), embedding.values[None], 1).by_probe()
        assert (found[0].person_id, found[0].face_id) == ("p3", "face-7")


def test_a_crop_is_warped_to_a_template_that_differs_and_kept_so(
    store: Store, staff: Collection, move: Callable[..., Collection], embedders: dict[str, Embedder]
) -> None:
    move("shifted")
    expect_embeddings_of(store, embedders["shifted"])
    templates = [embedders[name].bundle.contract.template for name in ("old", "shifted")]
    with store.frozen() as connection:
        crop = connection.exec_driver_sql("SELECT crop FROM faces WHERE face_id = 'face-3'").scalar_one()
    expected = align_face(draw_crop(3), *templates, (112, 112))
    np.testing.assert_array_equal(np.asarray(decode_image(crop, ImageLimits())), expected)
    np.testing.assert_array_equal(expected[:-5, 9:], draw_crop(3)[5:, :-9])
    assert staff.faces == store.collections.get("staff").faces


class Interruption(Exception):
    pass


def test_a_move_that_was_stopped_goes_on_where_it_was(
    store: Store,
    staff: Collection,
    move: Callable[..., Collection],
    embedders: dict[str, Embedder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(_what: str, done: int, _total: int | None) -> None:
        if done >= 15:
            raise Interruption

    before = everybody(store, "staff")
    with pytest.raises(Interruption):
        move(progress=stop)
    assert everybody(store, "staff") == before
    assert [draft.faces for draft in list_drafts(store)] == [15]
    embedded = []
    embed = Reembedder.embed
    monkeypatch.setattr(Reembedder, "embed", lambda self, some: embedded.extend(some) or embed(self, some))
    told: list[tuple[int, int | None]] = []
    move(progress=lambda _, done, total: told.append((done, total)))
    assert len(embedded) == staff.faces - 15
    assert told == [(20, 24), (24, 24)]
    expect_embeddings_of(store, embedders["new"])


def test_what_is_written_during_the_move_is_not_lost(
    store: Store,
    staff: Collection,
    move: Callable[..., Collection],
    embedders: dict[str, Embedder],
    somebody: Callable[..., NewPerson],
) -> None:
    expected: list[dict[str, Any]] = []

    def write_meanwhile(_what: str, done: int, _total: int | None) -> None:
        if done == 10:
            store.people.enroll(staff, [somebody("late", 100, 101), somebody("p4", 102, may_exist=True)])
            store.people.delete(staff, "p0")
            store.people.delete(staff, "p11")
            store.people.delete_face(staff, "p1", "face-2")
            store.people.update(staff, "p2", {"name": "Renamed", "metadata": {"new": True}})
            store.people.update(staff, "p3", {"name": None})
            store.people.delete(staff, "bare")
            store.people.delete(staff, "p5")
            store.people.enroll(staff, [somebody("p5", 103)])
            expected.extend(without_embeddings(store))

    move(progress=write_meanwhile)
    assert expected
    assert without_embeddings(store) == expected
    expect_embeddings_of(store, embedders["new"])


@pytest.mark.parametrize("late", [2, 3])
def test_what_is_written_at_the_last_moment_is_not_lost_either(
    store: Store,
    staff: Collection,
    move: Callable[..., Collection],
    embedders: dict[str, Embedder],
    somebody: Callable[..., NewPerson],
    monkeypatch: pytest.MonkeyPatch,
    late: int,
) -> None:
    monkeypatch.setattr(reembed_module, "LAST_FACES", 2)  # three are too many while writers wait
    turns: list[bool] = []
    finish = reembed_module.finish

    def write_and_finish(*what: Any) -> bool:
        if not turns:
            store.people.enroll(staff, [somebody(f"late{n}", 200 + n) for n in range(late)])
            store.people.delete(staff, "p6")
        turns.append(finish(*what))
        return turns[-1]

    monkeypatch.setattr(reembed_module, "finish", write_and_finish)
    moved = move()
    assert turns == ([True] if late == 2 else [False, True])
    assert (moved.people, moved.faces) == (PEOPLE + late, 2 * PEOPLE - 2 + late)
    expect_embeddings_of(store, embedders["new"])


def test_a_writer_that_still_has_the_old_collection_in_hand_is_told_and_not_ignored(
    store: Store, staff: Collection, move: Callable[..., Collection], somebody: Callable[..., NewPerson]
) -> None:
    move()
    writes = [
        lambda: store.people.enroll(staff, [somebody("late", 100)]),
        lambda: store.people.delete(staff, "p1"),
        lambda: store.people.delete_face(staff, "p1", "face-2"),
        lambda: store.people.update(staff, "p1", {"name": "x"}),
    ]
    for write in writes:
        with pytest.raises(CollectionNotFound):
            write()


def test_a_retry_after_the_move_still_finds_its_answer(
    store: Store, staff: Collection, move: Callable[..., Collection], somebody: Callable[..., NewPerson]
) -> None:
    answered = RememberedResponse("key", "hash", {"person_id": "late"})
    store.people.enroll(staff, [somebody("late", 100)], [answered])
    assert store.idempotency_keys.find(move(), ["key"]) == {"key": answered}


def test_a_collection_that_is_deleted_during_the_move_stays_deleted(
    store: Store, staff: Collection, move: Callable[..., Collection]
) -> None:
    with pytest.raises(CollectionNotFound):
        move(progress=lambda _, done, __: store.collections.delete(staff.name) if done == 10 else None)
    assert store.collections.all_keys() == set()


def test_what_a_crash_after_the_move_left_is_cleared_away(
    store: Store, staff: Collection, move: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr("sameface.model.store.drafts.drop_draft", crash)
        with pytest.raises(Interruption):
            move()
    assert [(draft.draft_of, draft.draft) for draft in list_drafts(store)] == [("staff", "replaced")]
    moved = move()
    assert moved.faces == staff.faces
    assert store.collections.all_keys() == {moved.key}
