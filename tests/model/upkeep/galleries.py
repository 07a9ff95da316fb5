"""Galleries of one person, and who is in a gallery."""

from contextlib import closing
from pathlib import Path

from sameface.model.store.store import Store
from tests.model.people import everybody, newcomer, random_units
from tests.model.upkeep.archives import BINDING, DIMENSION


def make_gallery(path: Path, person: str, faces: int = 1) -> None:
    """A gallery whose staff is one person."""
    with closing(Store(path)) as store:
        staff, _ = store.collections.create("staff", BINDING)
        store.people.enroll(staff, [newcomer(person, random_units(faces, DIMENSION))])


def people_in(gallery: Path) -> list[str]:
    """The ids of its staff."""
    with closing(Store(gallery)) as store:
        return [person["person_id"] for person in everybody(store, "staff")]
