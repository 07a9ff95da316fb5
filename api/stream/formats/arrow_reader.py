"""Reads a batch that is an Arrow IPC stream, record batch by record batch, while it arrives."""

import io

from sameface.api.errors import InvalidRequest
from sameface.api.stream.entries import MAX_ID, Entry
from sameface.api.stream.formats.arrow_columns import Column, check_columns, read_embeddings, read_texts
from sameface.api.stream.formats.arrow_messages import END, RECORD_BATCH, SCHEMA, Message, take_message
from sameface.api.stream.rows import Rows, no_rows

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowReader:
    """Reads rows of `id`, `embedding` and the texts `others`, which may be left out."""

    def __init__(self, dimension: int, others: tuple[str, ...], limit_bytes: int) -> None:
        import nanoarrow  # of the extra `arrow`
        from nanoarrow import ipc

        self._ipc, self._nanoarrow = ipc, nanoarrow
        self.dimension = dimension
        self.others = others
        self.limit_bytes = limit_bytes
        self.held = bytearray()
        self._schema = b""
        self._number = 0
        self._done = False
        self._broken = False

    def read(self, chunk: bytes, *, last: bool) -> list[Entry | Rows]:
        """The rows that `chunk` completes; once something is wrong with the stream, the rest is ignored."""
        found: list[Entry | Rows] = []
        if self._broken or self._done:
            return found
        self.held += chunk
        try:
            while not self._done and (message := take_message(self.held, self.limit_bytes)):
                found += self._take(message)
            if last and not self._done and (self.held or not self._schema):
                raise InvalidRequest("The Arrow stream stops in the middle.")
        except InvalidRequest as error:
            self._broken = True
            self.held.clear()
            found.append(Entry(self._number + 1, error))
        return found

    def _take(self, message: Message) -> list[Rows]:
        """The rows of a record batch; none of any other message."""
        if message.kind == END:
            self._done = True
        elif message.kind == SCHEMA and not self._schema:
            self._schema = message.content
            self._decode(b"")
        elif message.kind == RECORD_BATCH and self._schema:
            return list(self._decode(message.content).in_blocks())
        else:
            raise InvalidRequest("The Arrow stream has other messages than a schema and record batches.")
        return []

    def _decode(self, batch: bytes) -> Rows:
        """The rows of a record batch; without one, none, once the schema is checked."""
        try:
            source = self._ipc.InputStream.from_readable(io.BytesIO(self._schema + batch + END_OF_STREAM))
            stream = self._nanoarrow.c_array_stream(source)
            check_columns(stream.get_schema(), self.dimension, self.others)
            return self._read_rows(stream.get_next()) if batch else Rows(0, [], no_rows(self.dimension))
        except (RuntimeError, ValueError) as error:
            raise InvalidRequest(f"The Arrow stream cannot be read: {str(error).strip()}.") from error

    def _read_rows(self, columns: Column) -> Rows:
        """The columns of a record batch as rows."""
        self._check_size(columns)
        by_name = {column.schema.name: column for column in columns.children}
        embeddings, errors = read_embeddings(by_name.pop("embedding"), self.dimension)
        ids = read_texts(by_name.pop("id"))
        for row, name in enumerate(ids):
            if not name or len(name) > MAX_ID:
                errors[row] = InvalidRequest(f"id: must be text of 1 to {MAX_ID} characters.")
        self._number += columns.length
        texts = {name: read_texts(column) for name, column in by_name.items()}
        return Rows(self._number, ids, embeddings, errors, texts)

    def _check_size(self, columns: Column) -> None:
        """Raise before memory is taken for more rows than have room: a null takes a bit in the stream."""
        if {column.length for column in columns.children} != {columns.length}:
            raise InvalidRequest("The columns of a record batch differ in length.")
        if columns.length * 4 * self.dimension > self.limit_bytes:
            raise InvalidRequest(
                f"The embeddings of a record batch may take {self.limit_bytes} bytes, null or not:"
                " write smaller record batches.",
                limit=self.limit_bytes,
            )
