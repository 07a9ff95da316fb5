"""Batches of `sameface.open()`: their entries, their answers, and the blocks in between."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from PIL import Image

from sameface.model.enroll import EnrolledFace
from sameface.model.enroll_warnings import EnrollWarning
from sameface.model.errors import SamefaceError
from sameface.model.faces import Embedding, Photo, Value
from sameface.model.gallery.identified import IdentifiedFace
from sameface.photos import AnyProbe

Entry = TypeVar("Entry")

BLOCK_ENTRIES = 256
BLOCK_BYTES = 8_000_000  # of photos; a single one may be larger


@dataclass(frozen=True, slots=True)
class EnrollEntry:
    """Somebody to enrol in a batch; a known `person_id` gets one more face, None makes an id."""

    id: str
    probe: AnyProbe
    person_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchIdentified(Value):
    """Who is in one probe of a batch."""

    id: str
    results: list[IdentifiedFace]


@dataclass(frozen=True, slots=True)
class BatchEnrolled(Value):
    """Who was enrolled by one entry of a batch."""

    id: str
    person_id: str
    faces: list[EnrolledFace]
    warnings: list[EnrollWarning]


@dataclass(frozen=True, slots=True)
class BatchFailed(Value):
    """Why one entry of a batch failed; the others go on."""

    id: str
    error: SamefaceError

    def to_dict(self) -> dict[str, Any]:
        """The id, and the error as its code, its sentence and its facts."""
        error = {"code": self.error.code, "detail": self.error.detail, **self.error.facts}
        return {"id": self.id, "error": error}


def measure_bytes(probe: Photo | Embedding) -> int:
    """The bytes that a prepared probe holds in memory."""
    if isinstance(probe, Embedding):
        return probe.values.nbytes
    return probe.width * probe.height * 3 if isinstance(probe, Image.Image) else len(probe)


def prepare_blocks(
    entries: Iterable[Entry], prepare: Callable[[Entry], Photo | Embedding]
) -> Iterator[list[tuple[Entry, Photo | Embedding | SamefaceError]]]:
    """Yield blocks of entries, each with its prepared probe or its error; flat in memory."""
    block: list[tuple[Entry, Photo | Embedding | SamefaceError]] = []
    held = 0
    for entry in entries:
        try:
            probe = prepare(entry)
        except SamefaceError as error:
            block.append((entry, error))
        else:
            block.append((entry, probe))
            held += measure_bytes(probe)
        if len(block) == BLOCK_ENTRIES or held >= BLOCK_BYTES:
            yield block
            block, held = [], 0
    if block:
        yield block
