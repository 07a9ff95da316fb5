"""An index as a file, so that a restart need not read the whole store.

The file has a header of `HEADER_BYTES` (JSON, padded with spaces), then the columns `alive`, `faces` and
`people` as they are in memory, FAISS's own form of the candidates' index, if there is one, and the column
`embeddings`. The header says whose it is and has the SHA-256 of all that follows and of its own other fields.
"""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sameface.model.files import make_private_folder, replacing
from sameface.model.gallery.index.embedding_rows import EmbeddingRows
from sameface.model.gallery.index.faiss.candidates import read_faiss_index, write_faiss_index
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.store.records import FaceBlock

FOLDER = "indexes"  # of the snapshots, beside the gallery's file
VERSION = 2
HEADER_BYTES = 1024
CHUNK_BYTES = 1 << 20  # that are hashed at once


class SnapshotRefused(Exception):
    """The file is damaged, of another version or not of this collection."""


def save_snapshot(index: FaceIndex, path: Path, owner: dict[str, Any]) -> int:
    """Write the index into the file `path`, under the header fields `owner`; returns its change number.

    Rows may die during the write: they are written as zeros, and replaying the changes after that number
    marks them dead. If the index is rebuilt meanwhile, its old rows are written to the end.
    """
    make_private_folder(path.parent)
    with replacing(path, private=True) as file:
        return write(index, file, owner)


def write(index: FaceIndex, file: BinaryIO, owner: dict[str, Any]) -> int:
    """Write the columns, then the header, which has their hash; returns the change number in the header."""
    digest = hashlib.sha256()

    def put(content: bytes | memoryview) -> None:
        digest.update(content)
        file.write(content)

    file.write(b" " * HEADER_BYTES)
    with index.lock.shared():
        columns, rows, sequence, kind = index.columns, index.columns.count, index.sequence, index.kind
        for column in (columns.alive, columns.faces, columns.people):
            put(as_bytes(column))
        if kind == "codes":
            write_faiss_index(index.faiss_index, put)
    for some in columns.blocks(0, rows):
        with index.lock.shared():
            put(as_bytes(columns.embeddings[some]))
    header = owner | {
        "version": VERSION,
        "sequence": sequence,
        "rows": rows,
        "kind": kind if kind == "codes" else "exact",  # an index on a GPU is not saved, but filled again
    }
    digest.update(json.dumps(header).encode())
    file.seek(0)
    file.write(json.dumps(header | {"sha256": digest.hexdigest()}).encode())
    return sequence


def load_snapshot(path: Path, owner: dict[str, Any], device: str) -> FaceIndex:
    """The index in the file `path`; raises `SnapshotRefused` if its owner, version or hash is wrong."""
    with path.open("rb") as file, ThreadPoolExecutor(1) as beside:
        header = read_header(file)
        sha256 = header.pop("sha256", None)
        foreign = [key for key, value in {**owner, "version": VERSION}.items() if header.get(key) != value]
        if foreign:
            raise SnapshotRefused(f"it has another {', '.join(foreign)}")
        hashed = beside.submit(hash_content, file.fileno(), header)  # while the columns are read
        columns = read_columns(file, header["rows"], owner["dimension"])
        if hashed.result() != sha256 or columns is None:
            raise SnapshotRefused("its checksum is wrong")
        kind = "codes" if header["kind"] == "codes" else "exact"  # 0.1.0 wrote others, which are built anew
        faiss_index = read_faiss_index(file.read) if kind == "codes" else None
    index = FaceIndex(columns.dimension, device)
    index.adopt(columns, kind, faiss_index, header["sequence"])
    return index


def hash_content(file: int, header: dict[str, Any]) -> str:
    """The SHA-256 of all that follows the header, and of the header's other fields."""
    digest, place = hashlib.sha256(), HEADER_BYTES
    while content := os.pread(file, CHUNK_BYTES, place):
        digest.update(content)
        place += len(content)
    digest.update(json.dumps(header).encode())
    return digest.hexdigest()


def read_sequence(path: Path, owner: dict[str, Any]) -> int:
    """The change number of the snapshot `path`; -1 if there is none of this owner."""
    try:
        with path.open("rb") as file:
            header = read_header(file)
    except (OSError, SnapshotRefused):
        return -1
    return int(header.get("sequence", -1)) if owner.items() <= header.items() else -1


def read_header(file: BinaryIO) -> dict[str, Any]:
    """The header of a snapshot."""
    try:
        header = json.loads(file.read(HEADER_BYTES))
    except ValueError as error:
        raise SnapshotRefused("its header is damaged") from error
    if not isinstance(header, dict):
        raise SnapshotRefused("its header is damaged")
    return header


def read_columns(file: BinaryIO, rows: Any, dimension: int) -> EmbeddingRows | None:
    """The columns, read straight into their final memory; None if the file is too short for `rows` rows."""
    row_bytes = 1 + 8 + 8 + 4 * dimension
    if not isinstance(rows, int) or not 0 <= rows * row_bytes <= os.fstat(file.fileno()).st_size:
        return None
    alive, faces, people = (np.empty(rows, kind) for kind in (bool, np.int64, np.int64))
    embeddings = np.empty((rows, dimension), np.float32)
    file.seek(-embeddings.nbytes, os.SEEK_END)
    file.readinto(as_bytes(embeddings))  # type: ignore[attr-defined]
    file.seek(HEADER_BYTES)
    for column in (alive, faces, people):
        file.readinto(as_bytes(column))  # type: ignore[attr-defined]
    return EmbeddingRows.of(FaceBlock(faces, people, embeddings), alive)


def as_bytes(column: NDArray[Any]) -> memoryview:
    """The memory of a column, without a copy."""
    return memoryview(column.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def delete_snapshots(gallery: Path) -> None:
    """Delete the snapshots beside a gallery's file, which nobody has open: they are made again."""
    for path in gallery.with_name(FOLDER).glob("*"):
        path.unlink(missing_ok=True)
