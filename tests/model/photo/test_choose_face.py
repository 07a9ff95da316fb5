"""Which face is meant: the policies, and how size weighs against place."""

import pytest

from sameface.model.errors import SeveralFacesFound
from sameface.model.faces import Box, DetectedFace
from sameface.model.photo.choose_face import FACE_POLICIES, prominence

PHOTO = (640, 480)


def face_at(x: float, y: float, side: float) -> DetectedFace:
    """A face whose box is centred there."""
    return DetectedFace(Box(x - side / 2, y - side / 2, side, side), ((x, y),) * 5, 0.9)


CENTRE = face_at(320, 240, 100)
CORNER_SLIGHTLY_BIGGER = face_at(80, 70, 120)
CORNER_MUCH_BIGGER = face_at(130, 120, 240)


def test_the_policies_are_these() -> None:
    assert set(FACE_POLICIES) == {"prominent", "largest", "only", "all"}


@pytest.mark.parametrize("policy", FACE_POLICIES)
def test_no_face_is_no_choice(policy: str) -> None:
    assert FACE_POLICIES[policy]([], PHOTO) == []


@pytest.mark.parametrize("policy", FACE_POLICIES)
def test_a_lone_face_is_always_chosen(policy: str) -> None:
    assert FACE_POLICIES[policy]([CORNER_SLIGHTLY_BIGGER], PHOTO) == [CORNER_SLIGHTLY_BIGGER]


@pytest.mark.parametrize("turned_round", [False, True])
def test_a_face_in_the_centre_is_more_prominent_than_a_slightly_bigger_one_in_the_corner(
    turned_round: bool,
) -> None:
    faces = [CENTRE, CORNER_SLIGHTLY_BIGGER]
    faces = faces[::-1] if turned_round else faces
    assert FACE_POLICIES["prominent"](faces, PHOTO) == [CENTRE]


def test_a_much_bigger_face_is_prominent_wherever_it_is() -> None:
    assert FACE_POLICIES["prominent"]([CENTRE, CORNER_MUCH_BIGGER], PHOTO) == [CORNER_MUCH_BIGGER]


def test_of_equal_places_the_bigger_face_is_prominent() -> None:
    left, right = face_at(220, 240, 80), face_at(420, 240, 81)
    assert FACE_POLICIES["prominent"]([left, right], PHOTO) == [right]


def test_prominence_does_not_depend_on_the_photos_scale() -> None:
    small = [face_at(100, 80, 40), face_at(320, 200, 34)]
    shares = [prominence(face, PHOTO) for face in small]
    doubled = [
        prominence(face_at(*(2 * number for number in face.box.centre), 2 * face.box.width), (1280, 960))
        for face in small
    ]
    assert doubled == pytest.approx([4 * share for share in shares])


def test_the_largest_face_is_chosen_wherever_it_is() -> None:
    assert FACE_POLICIES["largest"]([CENTRE, CORNER_SLIGHTLY_BIGGER], PHOTO) == [CORNER_SLIGHTLY_BIGGER]


def test_size_is_area_and_not_one_side() -> None:
    tall = DetectedFace(Box(0, 0, 20, 90), ((0.0, 0.0),) * 5, 0.9)
    assert FACE_POLICIES["largest"]([tall, face_at(320, 240, 60)], PHOTO) == [face_at(320, 240, 60)]


def test_all_faces_come_most_prominent_first() -> None:
    faces = [CORNER_SLIGHTLY_BIGGER, CENTRE, CORNER_MUCH_BIGGER]
    assert FACE_POLICIES["all"](faces, PHOTO) == [CORNER_MUCH_BIGGER, CENTRE, CORNER_SLIGHTLY_BIGGER]


def test_only_refuses_several_faces_and_says_how_many() -> None:
    with pytest.raises(SeveralFacesFound, match="3") as refusal:
        FACE_POLICIES["only"]([CENTRE, CORNER_MUCH_BIGGER, CORNER_SLIGHTLY_BIGGER], PHOTO)
    assert refusal.value.facts == {"faces_found": 3}
