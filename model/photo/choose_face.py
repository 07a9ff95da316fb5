"""Policies that choose which of the detected faces to use."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from sameface.model.errors import InvalidArgument, SeveralFacesFound
from sameface.model.faces import DetectedFace

Face = TypeVar("Face", bound=DetectedFace)
Size = tuple[int, int]

CENTRE_SPREAD = 0.25  # of the diagonal: a face this far from the centre counts for 37 % of its area


def prominence(face: DetectedFace, image_size: Size) -> float:
    """The face's area times a Gaussian of its distance from the photo's centre."""
    x, y = face.box.centre
    offset = math.hypot(x - image_size[0] / 2, y - image_size[1] / 2) / math.hypot(*image_size)
    return face.box.width * face.box.height * math.exp(-((offset / CENTRE_SPREAD) ** 2))


def choose_only(faces: Sequence[Face], _: Size) -> list[Face]:
    """The only face, or nothing if there is none; several are an error with their number."""
    if len(faces) > 1:
        raise SeveralFacesFound(
            f"The photo must show exactly one face, and {len(faces)} were found.", faces_found=len(faces)
        )
    return list(faces)


def choose_prominent(faces: Sequence[Face], image_size: Size) -> list[Face]:
    """The most prominent face: most likely the one that the photo was taken of."""
    return sort_by_prominence(faces, image_size)[:1]


def choose_largest(faces: Sequence[Face], _: Size) -> list[Face]:
    """The face with the largest box."""
    return sorted(faces, key=lambda face: -face.box.width * face.box.height)[:1]


def sort_by_prominence(faces: Sequence[Face], image_size: Size) -> list[Face]:
    """All faces, most prominent first."""
    return sorted(faces, key=lambda face: -prominence(face, image_size))


FACE_POLICIES: dict[str, Callable[[Sequence[DetectedFace], Size], list[DetectedFace]]] = {
    "prominent": choose_prominent,
    "largest": choose_largest,
    "only": choose_only,
    "all": sort_by_prominence,
}


def choose_faces(policy: str, faces: Sequence[DetectedFace], image_size: Size) -> list[DetectedFace]:
    """The faces that the policy of this name chooses, most prominent first."""
    if policy not in FACE_POLICIES:
        raise InvalidArgument(f"`faces` is one of {', '.join(FACE_POLICIES)}, not {policy!r}.")
    return FACE_POLICIES[policy](faces, image_size)
