"""The columns of an Arrow record batch: embeddings and texts, as arrays and lists."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.api.errors import InvalidRequest
from sameface.model.errors import InvalidEmbedding, SamefaceError
from sameface.model.faces import Floats

Column: TypeAlias = Any  # nanoarrow's CArray, of an extra

TEXTS: dict[str, type[Any]] = {
    "u": np.int32,
    "U": np.int64,
}  # formats, and the type of their offsets
LISTS: dict[str, type[Any]] = {"+l": np.int32, "+L": np.int64}


def check_columns(schema: Any, dimension: int, texts: tuple[str, ...]) -> None:
    """Raise unless the stream has `id` and `embedding`, and no other columns than these and `texts`."""
    children = {child.name: child for child in schema.children}
    missing = {"id", "embedding"} - children.keys()
    unknown = children.keys() - {"id", "embedding", *texts}
    if missing or unknown:
        what = f"lacks the column {min(missing)}" if missing else f"has an unknown column {min(unknown)}"
        raise InvalidRequest(f"The Arrow stream {what}.")
    for name, child in children.items():
        if child.dictionary is not None:
            raise InvalidRequest(f"The column {name} is dictionary-encoded: send it as plain text.")
        if name != "embedding" and child.format not in TEXTS:
            raise InvalidRequest(f"The column {name} must be of the type utf8 or large_utf8.")
    embedding = children["embedding"]
    fixed = embedding.format == f"+w:{dimension}"
    if not (fixed or embedding.format in LISTS) or next(embedding.children).format != "f":
        raise InvalidRequest(
            "The column embedding must be of the type list<float32>, or"
            f" fixed_size_list<float32>[{dimension}]."
        )


def read_embeddings(column: Column, dimension: int) -> tuple[Floats, dict[int, SamefaceError]]:
    """The embeddings (rows, dimension), and by row what is wrong with those that cannot be read."""
    known = read_validity(column)
    numbers = column.child(0)
    values = np.asarray(numbers.view().buffer(1))[numbers.offset : numbers.offset + numbers.length]
    values = np.where(read_validity(numbers), values, np.float32(np.nan))  # a null number is none
    if column.schema.format in LISTS:
        offsets = read_offsets(column, LISTS[column.schema.format])
        fits = known & (np.diff(offsets) == dimension)
        rows = np.full((column.length, dimension), np.nan, np.float32)
        rows[fits] = values[offsets[:-1][fits, None] + np.arange(dimension)]
    else:
        first = column.offset * dimension
        fits, rows = known, values[first : first + column.length * dimension].reshape(-1, dimension)
    wrong = np.flatnonzero(~fits).tolist()
    return rows, {row: InvalidEmbedding(f"An embedding here has {dimension} numbers.") for row in wrong}


def read_texts(column: Column) -> list[str | None]:
    """The texts of a column, None for null; raises InvalidRequest if one is not UTF-8."""
    offsets = read_offsets(column, TEXTS[column.schema.format]).tolist()
    content = bytes(column.view().buffer(2))
    known = read_validity(column).tolist()
    try:
        return [
            content[offsets[row] : offsets[row + 1]].decode() if known[row] else None
            for row in range(column.length)
        ]
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The column {column.schema.name} has text that is not UTF-8.") from error


def read_offsets(column: Column, kind: type[Any]) -> NDArray[np.int64]:
    """Where each row of a column of texts or lists begins, and the last one ends."""
    if not column.length:
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(column.view().buffer(1), kind).astype(np.int64)
    return offsets[column.offset : column.offset + column.length + 1]


def read_validity(column: Column) -> NDArray[np.bool_]:
    """For each row, whether it is not null."""
    bits = np.frombuffer(column.view().buffer(0), np.uint8)
    if not len(bits):
        return np.ones(column.length, bool)
    known = np.unpackbits(bits, bitorder="little").astype(bool)
    return known[column.offset : column.offset + column.length]
