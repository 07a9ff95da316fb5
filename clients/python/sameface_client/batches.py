"""Batches: entries are gathered into blocks, and each block is a request of NDJSON that can be retried alone.

A block is bounded in entries and in bytes, so memory stays flat however many entries there are.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sameface_client.answers import BatchEnrolled, BatchFailed, BatchIdentified
from sameface_client.errors import InvalidRequest, SamefaceError, UnexpectedAnswer, to_error
from sameface_client.photos import AnyProbe, encode_embedding, is_embedding, to_file
from sameface_client.requests import Steps
from sameface_client.values import read_plain

BLOCK_ENTRIES = 1000
BLOCK_BYTES = 8_000_000  # of lines; a single one may be larger

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
    """Gathers entries into a block, sends it, and tells whose answer is whose.

    Lines are numbered within their block: the ids of the caller's entries need not differ.
    """

    def __init__(
        self,
        kind: type[Answer],
        find_id: Callable[[Entry], str],
        write: Callable[[Entry], Mapping[str, Any]],
        send: Callable[[bytes], Steps[bytes]],
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
            self._lines.append(write_line({"id": str(place), **self._write(entry)}))
            self._held += len(self._lines[-1])
        except SamefaceError as error:
            self._answers[place] = BatchFailed(self._ids[place], error)
        return len(self._ids) >= BLOCK_ENTRIES or self._held >= BLOCK_BYTES

    def send(self) -> Steps[list[Answer | BatchFailed]]:
        """Send the block; returns one answer per entry, in their order, and starts the next block."""
        ids, lines, answers = self._ids, self._lines, self._answers
        self._start_block()
        failure: SamefaceError = UnexpectedAnswer("The server did not answer this entry of the batch.")
        for line in (yield from self._send(b"".join(lines))).splitlines() if lines else ():
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
        self._lines: list[bytes] = []
        self._held = 0
        self._answers: dict[int, Answer | BatchFailed] = {}


def identify_lines(send: Callable[[bytes], Steps[bytes]]) -> Batch[tuple[str, AnyProbe], BatchIdentified]:
    """A batch of pairs of an id and a probe."""
    return Batch(BatchIdentified, lambda pair: pair[0], lambda pair: write_probe(pair[1]), send)


def enroll_lines(send: Callable[[bytes], Steps[bytes]]) -> Batch[EnrollEntry, BatchEnrolled]:
    """A batch of people."""
    return Batch(BatchEnrolled, lambda entry: entry.id, write_enrolment, send)


def write_probe(probe: AnyProbe) -> dict[str, Any]:
    """The fields of a line that hold a photo or an embedding."""
    if is_embedding(probe):
        return {"embedding": encode_embedding(probe)}  # type: ignore[arg-type]
    return {"image": {"base64": base64.b64encode(to_file(probe)).decode()}}  # type: ignore[arg-type]


def write_enrolment(entry: EnrollEntry) -> dict[str, Any]:
    """The fields of a person's line."""
    who = {"person_id": entry.person_id, "name": entry.name, "metadata": dict(entry.metadata)}
    return who | write_probe(entry.probe)


def write_line(fields: Mapping[str, Any]) -> bytes:
    """A line of NDJSON; what JSON cannot hold is refused."""
    try:
        return json.dumps(fields, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"Metadata must be JSON: {error}.") from error
