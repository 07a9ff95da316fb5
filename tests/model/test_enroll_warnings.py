"""What is odd about newcomers."""

import numpy as np
import pytest

from sameface.model.enroll_warnings import EnrollWarning, find_warnings
from sameface.model.faces import Floats
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.records import Collection
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION

[NEW] = random_units(1, DIMENSION, 6)


def near(similarity: float) -> Floats:
    """A unit embedding of this similarity to NEW, as the only row."""
    [aside] = random_units(1, DIMENSION, 8)
    aside = aside - (aside @ NEW) * NEW
    found = similarity * NEW + np.sqrt(1 - similarity**2) * aside / np.linalg.norm(aside)
    return found[None].astype(np.float32)


def likeness(warnings: list[EnrollWarning]) -> tuple[str, str | None, float | None]:
    [warning] = warnings
    return warning.code, warning.person_id, warning.similarity


NEAREST = ("looks_like_another_person", "ada", pytest.approx(0.95, abs=1e-5))


def test_of_several_faces_of_another_person_the_closest_is_warned_of(
    gallery: Gallery, staff: Collection
) -> None:
    people = [newcomer("ada", near(0.95)), newcomer("ada", near(0.7)), newcomer("eve", NEW[None])]
    assert likeness(find_warnings(gallery, staff, people)[2]) == NEAREST


def test_a_face_of_the_same_block_is_warned_of_if_the_gallery_has_a_weaker_one(
    gallery: Gallery, staff: Collection
) -> None:
    gallery.enroll(staff, [newcomer("ada", near(0.7))])
    staff = gallery.get_collection("staff")
    people = [newcomer("ada", near(0.95)), newcomer("eve", NEW[None])]
    assert likeness(find_warnings(gallery, staff, people)[1]) == NEAREST


def test_a_face_unlike_the_own_ones_is_warned_of(gallery: Gallery, staff: Collection) -> None:
    gallery.enroll(staff, [newcomer("ada", near(0.0))])
    staff = gallery.get_collection("staff")
    [warnings] = find_warnings(gallery, staff, [newcomer("ada", NEW[None])])
    assert likeness(warnings) == ("unlike_own_faces", None, pytest.approx(0, abs=1e-5))
