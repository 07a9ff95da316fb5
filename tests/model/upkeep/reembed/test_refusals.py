"""A collection that cannot move is refused before any work, and stays as it is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import update

from sameface.model.data_folder import DataFolder
from sameface.model.errors import BundleRefused
from sameface.model.photo.embed import Embedder
from sameface.model.store.databases.tables import faces
from sameface.model.store.drafts import list_drafts
from sameface.model.store.records import Collection, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep.errors import ReembedRefused
from sameface.model.upkeep.reembed import move_collection
from tests.model.people import everybody, newcomer, random_units
from tests.model.upkeep.reembed.moved import PEOPLE, create
from tests.networks import DIMENSION


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
        connection.execute(update(faces).where(faces.c.face_id == "face-4").values(crop=b"\0"))
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
