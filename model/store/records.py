"""What the store keeps and gives, as values that do not change."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sameface.model.faces import Floats, Keys

ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")  # of a collection, a person or a face: it fits into an address


@dataclass(frozen=True, slots=True)
class Collection:
    """People that are searched together, all embedded by one bundle."""

    key: int
    name: str
    store_crops: bool
    calibration: str | None
    bundle: str
    identity: str
    dimension: int
    revision: int
    people: int
    faces: int
    created_at: float


@dataclass(frozen=True, slots=True, eq=False)
class NewFace:
    """A face to enrol."""

    face_id: str
    embedding: Floats
    quality: float | None = None
    photo: str | None = None
    crop: bytes | None = None
    normalised: bool = False  # brought at another length than 1
    created_at: float | None = None  # now, unless it was enrolled elsewhere before


@dataclass(frozen=True, slots=True, eq=False)
class NewPerson:
    """A person to enrol with faces; one that may or must exist gets them added."""

    person_id: str
    faces: Sequence[NewFace]
    name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    may_exist: bool = False
    must_exist: bool = False
    created_at: float | None = None


@dataclass(frozen=True, slots=True)
class StoredFace:
    """A face of a person."""

    face_id: str
    quality: float | None
    photo: str | None
    created_at: float


@dataclass(frozen=True, slots=True)
class Person:
    """A person of a collection."""

    key: int
    person_id: str
    name: str | None
    metadata: dict[str, Any]
    created_at: float
    faces: list[StoredFace]


@dataclass(frozen=True, slots=True)
class Answered:
    """What was answered to an idempotency key, and the hash of what was asked."""

    idempotency_key: str
    request: str
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class FaceBlock:
    """Some faces, column by column, in the order of their keys."""

    faces: Keys
    people: Keys
    embeddings: Floats  # (faces, dimension)

    def __eq__(self, other: object) -> bool:
        """The same faces of the same people, to the last bit."""
        return isinstance(other, FaceBlock) and all(
            np.array_equal(getattr(self, column), getattr(other, column))
            for column in ("faces", "people", "embeddings")
        )


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """A piece of a change sequence up to a number: faces that came and are still there, and faces gone."""

    sequence: int
    came: FaceBlock
    gone: Keys
