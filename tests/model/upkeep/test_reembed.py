"""A collection moves to another recogniser: everybody comes along, whatever happens meanwhile."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.bundle import Bundle, load_bundle, save_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.errors import BundleRefused, CollectionNotFound, ModelMismatch, ReembedRefused
from sameface.model.faces import Pixels
from sameface.model.gallery.gallery import Gallery
from sameface.model.photo.align import align_face
from sameface.model.photo.embed import Embedder
from sameface.model.photo.image import ImageLimits, decode_image, encode_png
from sameface.model.runtime.session_pool import open_sessions
from sameface.model.store.drafts import list_drafts
from sameface.model.store.records import Binding, Collection, NewFace, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from sameface.model.upkeep import reembed as reembed_module
from sameface.model.upkeep.check_gallery import check_gallery
from sameface.model.upkeep.reembed import Reembedder, move_collection
from tests.model.people import everybody, newcomer, probe, random_units
from tests.networks import DIMENSION, build_recogniser

PEOPLE = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A data folder with two recognisers, and a third that wants the face elsewhere."""
    folder = DataFolder(tmp_path_factory.mktemp("data"))
    for name, seed in (("old", 1), ("new", 7)):
        (folder.models / name).mkdir(parents=True)
        bundle = build_recogniser(folder.models / name, name=name, seed=seed)
    contract = bundle.contract
    moved = tuple((x + 9, y - 5) for x, y in contract.template)
    save_bundle(
        dataclasses.replace(contract, name="shifted", template=moved), bundle.path, folder.models / "shifted"
    )
    return folder


@pytest.fixture(scope="module")
def embedders(folder: DataFolder) -> dict[str, Embedder]:
    bundles = [load_bundle(folder.models / name) for name in ("old", "new", "shifted")]
    return {
        bundle.contract.name: Embedder(bundle, open_sessions(bundle, "cpu", folder.cache))
        for bundle in bundles
    }


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "gallery.db")) as store:
        yield store


def draw_crop(seed: int) -> Pixels:
    pattern = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    return np.kron(pattern, np.ones((14, 14, 1), np.uint8))


@pytest.fixture
def somebody(embedders: dict[str, Embedder]) -> Callable[..., NewPerson]:
    """A person to enrol with faces that keep their crops."""

    def make(person_id: str, *seeds: int, **others: Any) -> NewPerson:
        embeddings = embedders["old"].embed([draw_crop(seed) for seed in seeds])
        faces = [
            NewFace(
                f"face-{seed}", embedding.values, seed / 1000, f"{seed:064x}", encode_png(draw_crop(seed))
            )
            for seed, embedding in zip(seeds, embeddings, strict=True)
        ]
        return NewPerson(person_id, faces, **others)

    return make


def create(store: Store, bundle: Bundle, *, store_crops: bool = True) -> Collection:
    contract = bundle.contract
    binding = Binding(
        store_crops=store_crops,
        calibration="lfw",
        bundle=contract.name,
        identity=bundle.identity,
        dimension=DIMENSION,
    )
    return store.collections.create("staff", binding)[0]


@pytest.fixture
def staff(store: Store, embedders: dict[str, Embedder], somebody: Callable[..., NewPerson]) -> Collection:
    """People with two faces each, and one who has lost the only one."""
    staff = create(store, embedders["old"].bundle)
    people = [somebody(f"p{n}", 2 * n, 2 * n + 1, name=f"N{n}", metadata={"n": n}) for n in range(PEOPLE)]
    store.people.enroll(staff, [*people, somebody("bare", 999)])
    store.people.delete_face(staff, "bare", "face-999")
    return store.collections.get("staff")


@pytest.fixture
def move(store: Store, folder: DataFolder, embedders: dict[str, Embedder]) -> Callable[..., Collection]:
    def move(name: str = "new", **others: Any) -> Collection:
        return move_collection(store, "staff", embedders[name].bundle, folder, "cpu", **others)

    return move


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed_module, "FACES_AT_ONCE", 5)


def without_embeddings(store: Store) -> list[dict[str, Any]]:
    people = everybody(store, "staff")
    for face in (face for person in people for face in person["faces"]):
        del face["embedding"]
    return people


def expect_embeddings_of(store: Store, embedder: Embedder) -> None:
    """Every face has the embedding that the recogniser gives its crop."""
    staff = store.collections.get("staff")
    assert staff.identity == embedder.identity
    assert check_gallery(store.path) == []
    with store.frozen() as connection:
        rows = connection.exec_driver_sql("SELECT embedding, crop FROM faces").all()
    assert len(rows) == staff.faces
    for embedding, crop in rows:
        [expected] = embedder.embed([np.asarray(decode_image(crop, ImageLimits()))])
        np.testing.assert_allclose(np.frombuffer(embedding, "<f4"), expected.values, atol=1e-6)


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


def test_searches_go_on_with_the_new_recogniser_and_the_old_one_is_told(
    tmp_path: Path, staff: Collection, move: Callable[..., Collection], embedders: dict[str, Embedder]
) -> None:
    with closing(Gallery(tmp_path / "gallery.db", embedders["old"].bundle)) as old:
        old.indexes.renew(staff)
        move()
        with pytest.raises(ModelMismatch, match="new"):
            old.get_collection("staff")
    assert not list((tmp_path / "indexes").glob("*.index"))  # the old embeddings are nowhere
    with closing(Gallery(tmp_path / "gallery.db", embedders["new"].bundle)) as new:
        [embedding] = embedders["new"].embed([draw_crop(7)])
        [found] = new.search(new.get_collection("staff"), [probe(embedding.values, "")], 1)
        assert (found[0].person_id, found[0].face_id) == ("p3", "face-7")


def test_a_crop_is_warped_to_a_template_that_differs_and_kept_so(
    store: Store, staff: Collection, move: Callable[..., Collection], embedders: dict[str, Embedder]
) -> None:
    move("shifted")
    expect_embeddings_of(store, embedders["shifted"])
    templates = [embedders[name].bundle.contract.template for name in ("old", "shifted")]
    with store.frozen() as connection:
        crop = connection.exec_driver_sql("SELECT crop FROM faces WHERE face_id = 'face-3'").scalar_one()
    expected = align_face(Image.fromarray(draw_crop(3)), *templates, (112, 112))
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


def test_faces_without_crops_are_counted_and_refused_before_any_work(
    store: Store, staff: Collection, move: Callable[..., Collection]
) -> None:
    bare = [newcomer(name, random_units(2, DIMENSION, seed)) for seed, name in enumerate(("eve", "fay"))]
    store.people.enroll(staff, bare)
    with pytest.raises(ReembedRefused, match=r"4 faces of 2 people .*sameface enroll FOLDER"):
        move()
    assert list_drafts(store) == []
    for person in bare:
        store.people.delete(staff, person.person_id)
    move()


def test_a_collection_that_keeps_no_crops_is_refused(
    store: Store,
    embedders: dict[str, Embedder],
    move: Callable[..., Collection],
    somebody: Callable[..., NewPerson],
) -> None:
    store.people.enroll(create(store, embedders["old"].bundle, store_crops=False), [somebody("ada", 1)])
    with pytest.raises(ReembedRefused, match="1 faces of 1 people"):
        move()


def test_a_crop_that_cannot_be_read_is_named(
    store: Store, staff: Collection, move: Callable[..., Collection]
) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE faces SET crop = x'00' WHERE face_id = 'face-4'")
    with pytest.raises(ReembedRefused, match="'face-4' of 'p2'"):
        move()
    store.people.delete(staff, "p2")
    assert move().people == PEOPLE


def test_crops_of_a_recogniser_that_is_not_there_cannot_be_understood(
    store: Store, staff: Collection, embedders: dict[str, Embedder], tmp_path: Path
) -> None:
    elsewhere = DataFolder(tmp_path)
    (elsewhere.models / "broken").mkdir(parents=True)
    (elsewhere.models / "broken" / "bundle.json").write_text("{")
    with pytest.raises(BundleRefused, match="old"):
        move_collection(store, "staff", embedders["new"].bundle, elsewhere, "cpu")
    assert store.collections.get("staff") == staff


def test_a_collection_of_this_recogniser_stays_as_it_is(
    store: Store, staff: Collection, move: Callable[..., Collection]
) -> None:
    before = everybody(store, "staff")
    assert move("old") == staff
    assert everybody(store, "staff") == before


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
