"""Faces as columns, from rows of face key, person key and stored embedding."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Select, select

from sameface.model.faces import Floats
from sameface.model.store.databases.database import damaged
from sameface.model.store.databases.tables import faces
from sameface.model.store.records import Collection, FaceBlock


def select_faces(collection: Collection) -> Select[tuple[int, int, bytes]]:
    """SELECT key, person and embedding of a collection's faces, in the order of their keys."""
    return (
        select(faces.c.key, faces.c.person, faces.c.embedding)
        .where(faces.c.collection == collection.key)
        .order_by(faces.c.key)
    )


def to_block(rows: Sequence[Any], dimension: int) -> FaceBlock:
    """Rows of face key, person key and stored embedding as columns."""
    stored = b"".join(row[2] for row in rows)
    return FaceBlock(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        read_embeddings(stored, len(rows), dimension),
    )


def read_embeddings(stored: bytes, count: int, dimension: int) -> Floats:
    """The `count` embeddings in `stored`, one after the other."""
    if len(stored) != 4 * count * dimension:
        raise damaged("an embedding is too short or too long")
    return np.frombuffer(stored, "<f4").reshape(count, dimension)
