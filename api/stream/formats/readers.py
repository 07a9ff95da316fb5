"""The reader of a batch's body, by its media type."""

from collections.abc import Sequence
from typing import Protocol

from python_multipart.multipart import parse_options_header

from sameface.api.body.form import MAX_FIELD_BYTES
from sameface.api.body.read_body import BASE64_GROWTH
from sameface.api.errors import UnsupportedMediaType
from sameface.api.settings import Settings
from sameface.api.stream.entries import Entry, LineReader, PhotoReader
from sameface.api.stream.formats.arrow_reader import ArrowReader
from sameface.api.stream.formats.media_types import FORM, LIKE_NDJSON, NDJSON, NPY, require_arrow
from sameface.api.stream.formats.npy_reader import NpyReader
from sameface.api.stream.rows import Rows

RECORD_BATCH_BYTES = 8_000_000  # of one record batch, which is held until it is complete


class Reader(Protocol):
    """Turns the chunks of a body into entries, or rows of entries."""

    held: bytearray  # the part of an entry that is not complete yet

    def read(self, chunk: bytes, *, last: bool) -> Sequence[Entry | Rows]:
        """The entries that `chunk` completes; `last` says that the body ends with it."""


def reader_for(
    content_type: str, settings: Settings, dimension: int, texts: tuple[str, ...], taken: tuple[str, ...]
) -> Reader:
    """The reader for `content_type`; raises UnsupportedMediaType if it is not among the types `taken`.

    Embeddings have this `dimension`; `texts` are the columns of an Arrow stream that may be left out.
    """
    kind, options = parse_options_header(content_type)
    name = kind.decode("latin-1")
    name = NDJSON if name in LIKE_NDJSON else name
    if name not in taken:
        raise UnsupportedMediaType(f"Send {', '.join(taken[:-1])} or {taken[-1]}.")
    if name == NDJSON:
        return LineReader(int(settings.max_image_bytes * BASE64_GROWTH) + MAX_FIELD_BYTES)
    if name == FORM:
        return PhotoReader(options.get(b"boundary", b""), settings.max_image_bytes)
    if name == NPY:
        return NpyReader(dimension)
    require_arrow()
    return ArrowReader(dimension, texts, RECORD_BATCH_BYTES)
