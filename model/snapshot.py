"""An index as a file, so that a restart need not read the whole store.

The file has a header of `HEADER_BYTES` (JSON, padded with spaces), then the columns `alive`, `faces`,
`people` and `embeddings` as they are in memory, then FAISS's own form of the candidates' index, if there is
one. The header says whose it is and has the SHA-256 of all that follows.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import faiss
import numpy as np
from numpy.typing import NDArray

from model.candidates import Faiss
from model.columns import Columns
from model.files import replacing
from model.index import FaceIndex
from model.records import FaceBlock

VERSION = 1
HEADER_BYTES = 1024


class SnapshotRefused(Exception):
    """The file is damaged, of another version or not of this collection."""


def save_snapshot(index: FaceIndex, path: Path, owner: dict[str, Any]) -> None:
    """Write what the index has followed up to now; `owner` says whose it is.

    Rows may die while they are written: they are zero then, and replaying the changes after `sequence` finds
    them dead. If the index is rebuilt meanwhile, the rows it had are written to the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        write(index, file, owner)


def write(index: FaceIndex, file: BinaryIO, owner: dict[str, Any]) -> None:
    """Header and columns, the header last because it has the hash."""
    hashed = Hashed(file)
    file.write(b" " * HEADER_BYTES)
    with index.lock.shared():
        columns, rows, sequence, kind = index.columns, len(index.columns), index.sequence, index.kind
        for column in (columns.alive, columns.faces, columns.people):
            hashed.write(column)
        held = index.candidates if kind == "ivf" else None  # what is on a GPU is copied there again
        candidates = faiss.serialize_index(held) if held is not None else np.empty(0, np.uint8)
    for some in columns.blocks(0, rows):
        with index.lock.shared():
            hashed.write(columns.embeddings[some])
    hashed.write(candidates)
    header = owner | {
        "version": VERSION,
        "sequence": sequence,
        "rows": rows,
        "kind": kind if held is not None else "exact",
        "sha256": hashed.digest.hexdigest(),
    }
    file.seek(0)
    file.write(json.dumps(header).encode())


def load_snapshot(path: Path, owner: dict[str, Any], revision: int, device: str) -> FaceIndex:
    """The index as it was written, to follow the changes since."""
    with path.open("rb") as file:
        header = read_header(file)
        foreign = [key for key, value in {**owner, "version": VERSION}.items() if header.get(key) != value]
        if foreign:
            raise SnapshotRefused(f"it has another {', '.join(foreign)}")
        if header["sequence"] > revision:
            raise SnapshotRefused("it is ahead of the store, which must have been put back")
        hashed = Hashed(file)
        columns = read_columns(hashed.read, header["rows"], owner["dimension"])
        rest = hashed.read_rest()
    if hashed.digest.hexdigest() != header["sha256"]:
        raise SnapshotRefused("its checksum is wrong")
    index = FaceIndex(columns.dimension, device)
    index.adopt(columns, header["kind"], read_candidates(header["kind"], rest), header["sequence"])
    return index


def read_sequence(path: Path, owner: dict[str, Any]) -> int:
    """How far a snapshot goes, -1 if there is none of this owner."""
    try:
        with path.open("rb") as file:
            header = read_header(file)
    except (OSError, SnapshotRefused):
        return -1
    return int(header["sequence"]) if owner.items() <= header.items() else -1


def read_header(file: BinaryIO) -> dict[str, Any]:
    """What the file says of itself."""
    try:
        header: dict[str, Any] = json.loads(file.read(HEADER_BYTES))
        return header
    except ValueError as error:
        raise SnapshotRefused("its header is damaged") from error


def read_columns(read: Callable[[NDArray[Any]], None], rows: int, dimension: int) -> Columns:
    """The rows, read straight into the memory that they stay in."""
    alive, faces = np.empty(rows, bool), np.empty(rows, np.int64)
    people, embeddings = np.empty(rows, np.int64), np.empty((rows, dimension), np.float32)
    for column in (alive, faces, people, embeddings):
        read(column)
    return Columns.of(FaceBlock(faces, people, embeddings), alive)


def read_candidates(kind: str, content: bytes) -> Faiss:
    """FAISS's index, if there is one."""
    return faiss.deserialize_index(np.frombuffer(content, np.uint8)) if kind == "ivf" else None


class Hashed:
    """A file whose bytes are hashed as they pass."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.sha256()

    def write(self, column: NDArray[Any]) -> None:
        """Write a column and count it in."""
        content = as_bytes(column)
        self.digest.update(content)
        self.file.write(content)

    def read(self, column: NDArray[Any]) -> None:
        """Fill a column and count it in."""
        content = as_bytes(column)
        if self.file.readinto(content) != len(content):  # type: ignore[attr-defined]
            raise SnapshotRefused("it is cut short")
        self.digest.update(content)

    def read_rest(self) -> bytes:
        """All that is left."""
        content = self.file.read()
        self.digest.update(content)
        return content


def as_bytes(column: NDArray[Any]) -> memoryview:
    """A column's own memory."""
    return memoryview(column.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
