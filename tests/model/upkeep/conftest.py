"""What tests of archives share."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sameface.model.store.records import Collection, NewFace, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep.export_import import export_collection
from tests.model.people import newcomer, random_units
from tests.model.upkeep.archives import BINDING, CROP, DIMENSION
from tests.postgres_server import gallery_in

DETAILS = {"box": {"left": 0.1}, "score": 0.9, "external_id": "door:1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(gallery_in(tmp_path))) as store:
        yield store


@pytest.fixture
def staff(store: Store) -> Collection:
    """Four people: with two faces, with a crop, with none, and with an odd name."""
    staff, _ = store.collections.create("staff", replace(BINDING, store_crops=True))
    [values] = random_units(1, DIMENSION, 5)
    store.people.enroll(
        staff,
        [
            newcomer("ada", random_units(2, DIMENSION), name="Ada", metadata={"room": [1, None]}),
            NewPerson(
                "bob", [NewFace("bob-0", values, 0.75, "f" * 64, CROP, created_at=12.5, details=DETAILS)]
            ),
            newcomer("cleo", random_units(1, DIMENSION, 1)),
            newcomer("Dörte".encode().hex(), random_units(1, DIMENSION, 2), name="Dörte\n\u2028"),
        ],
    )
    store.people.delete_face(staff, "cleo", "cleo-0")
    return store.collections.get("staff")


@pytest.fixture
def archive(store: Store, staff: Collection, tmp_path: Path) -> Path:
    export_collection(store, staff.name, tmp_path / "staff.gz")
    return tmp_path / "staff.gz"
