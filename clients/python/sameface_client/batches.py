"""Batches: entries are gathered into blocks, and each block is a request that can be retried alone.

A block is bounded in entries and in bytes, so memory stays flat however many entries there are. Probes that
are embeddings are sent as one array, everything else as lines of JSON.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sameface_client.answers import BatchEnrolled, BatchFailed, BatchIdentified
from sameface_client.errors import InvalidRequest, SamefaceError, UnexpectedAnswer, to_error
from sameface_client.photos import AnyProbe, is_embedding, pack_embedding, to_file
from sameface_client.requests import Body, Steps
from sameface_client.values import read_plain, to_base64

BLOCK_ENTRIES = 1000
BLOCK_BYTES = 8_000_000  # of entries; a single one may be larger
NDJSON, NPY = "application/x-ndjson", "application/x-npy"
NPY_START = b"\x93NUMPY\x01\x00"  # and the version of the format
NPY_ALIGNMENT = 64  # of the first row

Entry = TypeVar("Entry")
Answer = TypeVar("Answer", bound=BatchIdentified | BatchEnrolled)


@dataclass(frozen=True, slots=True)
class EnrollEntry:
    """Somebody to enrol in a batch; a known `person_id` gets one more face, None makes an id."""

    id: str
    probe: AnyProbe
    person_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Batch(Generic[Entry, Answer]):
    """Gathers entries into a block, sends it, and matches the answers to the entries.

    Lines are numbered within their block: the ids of the caller's entries need not differ.
    """

    def __init__(
        self,
        kind: type[Answer],
        find_id: Callable[[Entry], str],
        write: Callable[[Entry], Mapping[str, Any] | bytes],
        send: Callable[[Body], Steps[bytes]],
    ) -> None:
        self._kind = kind
        self._find_id = find_id
        self._write = write
        self._send = send
        self._start_block()

    def add(self, entry: Entry) -> bool:
        """Take an entry; returns whether the block is full and is to be sent."""
        place = len(self._ids)
        self._ids.append(self._find_id(entry))
        try:
            written = self._write(entry)
            if not isinstance(written, bytes):
                written = self._lines[place] = write_line({"id": str(place), **written})
            else:
                self._embeddings[place] = written
            self._held += len(written)
        except SamefaceError as error:
            self._answers[place] = BatchFailed(self._ids[place], error)
        return len(self._ids) >= BLOCK_ENTRIES or self._held >= BLOCK_BYTES

    def send(self) -> Steps[list[Answer | BatchFailed]]:
        """Send the block; returns one answer per entry, in their order, and starts the next block."""
        ids, answers = self._ids, self._answers
        body = write_block(len(ids), self._lines, self._embeddings)
        self._start_block()
        failure: SamefaceError = UnexpectedAnswer("The server did not answer this entry of the batch.")
        for line in (yield from self._send(body)).splitlines() if body.content else ():
            answer = json.loads(line)
            place = answer["id"] and int(answer["id"])
            if place is None:  # the rest of the block was given up
                failure = to_error(answer["error"])
            elif "error" in answer:
                answer["error"].pop("line", None)  # counts within the block, which the caller does not see
                answers[place] = BatchFailed(ids[place], to_error(answer["error"]))
            else:
                answers[place] = read_plain(self._kind, answer | {"id": ids[place]})
        return [answers.get(place) or BatchFailed(name, failure) for place, name in enumerate(ids)]

    def _start_block(self) -> None:
        self._ids: list[str] = []
        self._lines: dict[int, bytes] = {}
        self._embeddings: dict[int, bytes] = {}
        self._held = 0
        self._answers: dict[int, Answer | BatchFailed] = {}


def identify_batch(send: Callable[[Body], Steps[bytes]]) -> Batch[tuple[str, AnyProbe], BatchIdentified]:
    """A batch of pairs of an id and a probe."""
    return Batch(BatchIdentified, lambda pair: pair[0], lambda pair: write_probe(pair[1]), send)


def enroll_batch(send: Callable[[Body], Steps[bytes]]) -> Batch[EnrollEntry, BatchEnrolled]:
    """A batch of people."""
    return Batch(BatchEnrolled, lambda entry: entry.id, write_enrolment, send)


def write_probe(probe: AnyProbe) -> dict[str, Any] | bytes:
    """An embedding as little-endian float32, or the field of a line that holds a photo."""
    if is_embedding(probe):
        return pack_embedding(probe)  # type: ignore[arg-type]
    return {"image": {"base64": to_base64(to_file(probe))}}  # type: ignore[arg-type]


def write_enrolment(entry: EnrollEntry) -> dict[str, Any]:
    """The fields of a person's line."""
    who = {"person_id": entry.person_id, "name": entry.name, "metadata": dict(entry.metadata)}
    probe = write_probe(entry.probe)
    return who | ({"embedding": to_base64(probe)} if isinstance(probe, bytes) else probe)


def write_block(count: int, lines: Mapping[int, bytes], embeddings: Mapping[int, bytes]) -> Body:
    """The body of a block of `count` entries, each at its place a line or an embedding, or left out.

    If all are embeddings of one length they are one array, whose rows are known by their numbers.
    """
    sizes = {len(values) for values in embeddings.values()}
    if len(embeddings) == count and len(sizes) == 1 and sizes != {0}:
        return Body(write_array(list(embeddings.values())), NPY)
    fields = {place: {"id": str(place), "embedding": to_base64(embeddings[place])} for place in embeddings}
    written = {**lines, **{place: write_line(each) for place, each in fields.items()}}
    return Body(b"".join(written[place] for place in sorted(written)), NDJSON)


def write_array(rows: Sequence[bytes]) -> bytes:
    """Rows of float32 as a file of NumPy's format, version 1.0, which needs no NumPy."""
    shape = len(rows), len(rows[0]) // 4
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()
    length = -(len(NPY_START) + 2 + len(header) + 1) % NPY_ALIGNMENT + len(header) + 1
    start = NPY_START + length.to_bytes(2, "little")
    return start + header.ljust(length - 1) + b"\n" + b"".join(rows)


def write_line(fields: Mapping[str, Any]) -> bytes:
    """A line of NDJSON; what JSON cannot hold is refused."""
    try:
        return json.dumps(fields, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"Metadata must be JSON: {error}.") from error
