"""Writes the answers of a batch in the format that its client accepts: NDJSON, or an Arrow IPC stream."""

import io
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from sameface.api.stream.answers import AnswerColumns, Answers, Describe
from sameface.api.stream.formats.media_types import ARROW, NDJSON, require_arrow
from sameface.model.errors import SamefaceError


class Writer(Protocol):
    """Turns answers into the bytes of the response."""

    media_type: str

    def start(self) -> bytes:
        """The bytes before the first answer."""

    def write(self, answers: Answers) -> bytes:
        """The bytes of a block's answers."""

    def end(self, failure: SamefaceError | None) -> bytes:
        """The bytes after the last answer, with the `failure` of the whole batch, if there is one."""


def writer_for(accept: str, describe: Describe) -> Writer:
    """The writer of what the header Accept asks for; NDJSON unless it names Arrow."""
    return ArrowWriter(describe) if names_arrow(accept) else LineWriter(describe)


def names_arrow(accept: str) -> bool:
    """Whether Arrow is among the types of the header Accept, and not refused there by `q=0`."""
    for part in accept.lower().split(","):
        kind, *options = (each.strip() for each in part.split(";"))
        if kind == ARROW:
            return not any(each.startswith("q=0") and not each[2:].strip("0.") for each in options)
    return False


class LineWriter:
    """Writes a line of JSON per entry."""

    media_type = NDJSON

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def start(self) -> bytes:
        """Nothing: lines need no beginning."""
        return b""

    def write(self, answers: Answers) -> bytes:
        """A line per entry."""
        return b"".join(to_json(line) + b"\n" for line in answers.to_lines(self._describe))

    def end(self, failure: SamefaceError | None) -> bytes:
        """A line without an id if the whole batch failed."""
        return to_json({"id": None, "error": self._describe(failure)}) + b"\n" if failure else b""


class ArrowWriter:
    """Writes a record batch per block."""

    media_type = ARROW

    def __init__(self, describe: Describe) -> None:
        require_arrow()
        import nanoarrow  # of the extra `arrow`
        from nanoarrow import ipc

        self._nanoarrow = nanoarrow
        self._describe = describe
        self._written = io.BytesIO()
        self._stream = ipc.StreamWriter.from_writable(self._written)
        text = nanoarrow.string()
        self._schema = nanoarrow.struct(
            {
                "id": text,
                "person_id": text,
                "name": text,
                "similarity": nanoarrow.float64(),
                "match": nanoarrow.bool_(),
                "error": text,
            }
        )

    def start(self) -> bytes:
        """The schema."""
        empty = AnswerColumns([], [], [], np.zeros(0), np.zeros(0, bool), [])
        self._stream.write_array(self._to_array(empty))
        return self._take()

    def write(self, answers: Answers) -> bytes:
        """A record batch."""
        self._stream.write_array(self._to_array(answers.to_columns(self._describe)))
        return self._take()

    def end(self, failure: SamefaceError | None) -> bytes:
        """A row without an id if the whole batch failed, and the end of the stream."""
        if failure:
            problem = to_json(self._describe(failure)).decode()
            row = AnswerColumns([None], [None], [None], np.array([np.nan]), np.zeros(1, bool), [problem])
            self._stream.write_array(self._to_array(row))
        self._stream.close()
        return self._take()

    def _take(self) -> bytes:
        content = self._written.getvalue()
        self._written.seek(0)
        self._written.truncate()
        return content

    def _to_array(self, columns: AnswerColumns) -> Any:
        """The columns as one array of nanoarrow."""
        count, make = len(columns.ids), self._nanoarrow.c_array_from_buffers
        known = ~np.isnan(columns.similarities)
        children = [
            self._to_texts(columns.ids),
            self._to_texts(columns.person_ids),
            self._to_texts(columns.names),
            make(self._nanoarrow.float64(), count, [to_bits(known), np.nan_to_num(columns.similarities)]),
            make(self._nanoarrow.bool_(), count, [None, to_bits(columns.matches)]),
            self._to_texts(columns.errors),
        ]
        return make(self._schema, count, [None], children=children)

    def _to_texts(self, texts: Sequence[str | None]) -> Any:
        """A column of texts; None is null."""
        encoded = [text.encode() if text else b"" for text in texts]
        offsets = np.zeros(len(texts) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, encoded), np.int32, len(encoded)), out=offsets[1:])
        known = None if None not in texts else to_bits(np.array([text is not None for text in texts]))
        buffers = [known, offsets, b"".join(encoded)]
        return self._nanoarrow.c_array_from_buffers(self._nanoarrow.string(), len(texts), buffers)


def to_bits(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Flags as Arrow has them, one bit each."""
    return np.packbits(flags, bitorder="little")
