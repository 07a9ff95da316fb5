"""The records of the store, as frozen values."""

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sameface.model.errors import InvalidId
from sameface.model.faces import Floats, Keys

# The id of a collection, a person or a face, safe in a URL: not `.` and `..`, which clients take for folders.
ID_PATTERN = r"^(\.{3,}|\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)$"
ID_LENGTH = 128
ID = re.compile(ID_PATTERN)
MAX_NAME = 200  # characters
MAX_METADATA_BYTES = 16_000  # as JSON
MOST_REVIEWERS = 2  # that a collection may ask for: as many as Art. 14(5) of the EU's AI Act
LAST_TIME = 253_402_300_800  # the year 10,000


def is_id(value: object) -> bool:
    """Whether `value` can be the id of a person or face, or the name of a collection."""
    return isinstance(value, str) and len(value) <= ID_LENGTH and ID.fullmatch(value) is not None


def draw_id() -> str:
    """A random id for a person or a face."""
    return secrets.token_hex(12)


def refuse_invalid_id(value: str, noun: str) -> None:
    """Raise if `value` cannot be the id of a person or face, or the name of a collection."""
    if not is_id(value):
        raise InvalidId(f"{value!r} cannot be the id of a {noun}: use letters, digits and . _ ~ -")


def is_text(value: object, longest: int) -> bool:
    """Whether `value` is valid Unicode of at most `longest` characters; half a surrogate pair is not."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_metadata_fault(value: object) -> str | None:
    """Why `value` cannot be metadata, None if it can: JSON that can be read back, in few bytes."""
    if not isinstance(value, dict):
        return "must be a JSON object"
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return "must be JSON without NaN, broken text or hundreds of levels"
    return f"may have {MAX_METADATA_BYTES} bytes" if len(written) > MAX_METADATA_BYTES else None


@lru_cache(maxsize=64)  # the decisions of a block have the same times
def write_time(seconds: float) -> str:
    """A Unix time in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The settings that are fixed when a collection is made: recogniser, stored crops, calibration."""

    bundle: str  # the recogniser's name
    identity: str  # the recogniser's identity: embeddings of two recognisers never mix
    dimension: int
    store_crops: bool = False
    calibration: str | None = None  # None: the server's default
    reviewers: int = 0  # people who must confirm a match: 0, 1 or 2

    def to_columns(self) -> dict[str, Any]:
        """The values of the columns of the same names."""
        return asdict(self)

    def differences(self, other: "Binding") -> list[str]:
        """The names of the fields in which two bindings differ."""
        names = [each.name for each in fields(self)]
        return [name for name in names if getattr(self, name) != getattr(other, name)]


class CollectionState(NamedTuple):
    """What may change of a collection as long as it has its key; one that is replaced gets another name."""

    name: str
    revision: int
    people: int
    faces: int


@dataclass(frozen=True, slots=True)
class Collection:
    """People that are searched together, all embedded by one recogniser, as of one revision."""

    key: int
    name: str
    store_crops: bool
    calibration: str | None
    bundle: str
    identity: str
    dimension: int
    revision: int  # the last number of its change sequence
    people: int
    faces: int
    created_at: float
    draft_of: str | None = None
    draft: str | None = None  # a draft's purpose; None: not a draft
    reviewers: int = 0  # people who must confirm a match
    compacted: int = 0  # changes up to this number are no longer kept

    @property
    def state(self) -> CollectionState:
        """What may have changed since."""
        return CollectionState(self.name, self.revision, self.people, self.faces)

    @property
    def binding(self) -> Binding:
        """The settings that were fixed when the collection was made."""
        return Binding(**{each.name: getattr(self, each.name) for each in fields(Binding)})


@dataclass(frozen=True, slots=True, eq=False)
class NewFace:
    """A face to enrol."""

    face_id: str
    embedding: Floats
    quality: float | None = None
    photo: str | None = None  # the SHA-256 of the photo
    crop: bytes | None = None  # PNG
    normalised: bool = False  # the embedding was sent at another length than 1
    faces_found: int = 1  # in its photo
    created_at: float | None = None  # None: now
    details: dict[str, Any] | None = None  # for clients that read them again: its box, score and external id


@dataclass(frozen=True, slots=True, eq=False)
class NewPerson:
    """A person to enrol with faces; if the person may or must exist, the faces are added."""

    person_id: str
    faces: Sequence[NewFace]
    name: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    may_exist: bool = False
    must_exist: bool = False
    created_at: float | None = None  # None: now


@dataclass(frozen=True, slots=True)
class StoredFace:
    """A face of an enrolled person, without its embedding."""

    face_id: str
    quality: float | None
    photo: str | None
    created_at: float


@dataclass(frozen=True, slots=True)
class Person:
    """An enrolled person."""

    key: int
    person_id: str
    name: str | None
    metadata: dict[str, Any]
    created_at: float
    faces: list[StoredFace]


@dataclass(frozen=True, slots=True)
class FaceOwner:
    """The person whom a face belongs to, and the face's id."""

    person_id: str
    name: str | None
    face_id: str

    @property
    def label(self) -> str:
        """What the person is called: the name, or the id of who has none."""
        return self.name or self.person_id


@dataclass(frozen=True, slots=True)
class KnownFace(FaceOwner):
    """A face with its owner, and what is kept of its photo."""

    key: int
    photo: str | None  # the SHA-256
    details: dict[str, Any] | None

    @property
    def is_alone(self) -> bool:
        """Whether it is a person of its own, who has the id of the face, and belongs to no user."""
        return self.face_id == self.person_id


@dataclass(frozen=True, slots=True)
class User:
    """A person whose id is not that of an own face, and how many faces the person has."""

    person_id: str
    name: str | None
    faces: int


@dataclass(frozen=True, slots=True)
class RememberedResponse:
    """The first response to an idempotency key, and the hash of its request."""

    idempotency_key: str
    request_sha256: str
    response: dict[str, Any]
    forgotten: bool = False  # the person was deleted since


@dataclass(frozen=True, slots=True, eq=False)
class FaceBlock:
    """Some faces, column by column, in the order of their keys."""

    faces: Keys
    people: Keys
    embeddings: Floats  # (faces, dimension)

    @classmethod
    def join(cls, blocks: Sequence["FaceBlock"]) -> "FaceBlock":
        """The faces of all `blocks`, of which there is at least one, one block after the other."""
        return cls(
            np.concatenate([block.faces for block in blocks]),
            np.concatenate([block.people for block in blocks]),
            np.concatenate([block.embeddings for block in blocks]),
        )

    def __eq__(self, other: object) -> bool:
        """Whether both have the same faces of the same people, to the last bit."""
        return isinstance(other, FaceBlock) and all(
            np.array_equal(getattr(self, column), getattr(other, column))
            for column in ("faces", "people", "embeddings")
        )


@dataclass(frozen=True, slots=True, eq=False)
class FaceChanges:
    """A piece of a change sequence up to the number `sequence`."""

    sequence: int
    came: FaceBlock  # faces that were enrolled and are still there
    gone: Keys  # faces that were deleted


@dataclass(frozen=True, slots=True)
class Feed:
    """How far a collection was fed into Milvus, by the collection's key."""

    collection: int
    sequence: int = 0  # the last change that Milvus surely has
    mark: int = 0  # the key of the entity in Milvus that says so; 0: nothing is there
