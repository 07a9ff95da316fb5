"""How PostgreSQL takes rows: a few of several tables by one statement, many by COPY; and draws keys."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import numpy as np
from psycopg.types.json import Json
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
)
from sqlalchemy.types import TypeEngine

from sameface.model.store.databases.database import Rows, damaged
from sameface.model.store.databases.tables import COUNTED
from sameface.model.store.records import Collection, FaceBlock

COPIED_ROWS = 20  # of a table: from so many on, COPY is faster than INSERT
SHAPES = 200  # statements that are remembered

TYPES: dict[type[TypeEngine[Any]], str] = {
    BigInteger: "int8",
    Integer: "int4",
    Float: "float8",
    Boolean: "bool",
    JSON: "json",
    LargeBinary: "bytea",
    String: "varchar",
}

# A binary COPY: a header, rows of the number of columns and each value after its length, and an end.
HEADER_BYTES = 19
COPIED_FACE = [
    ("columns", ">i2"),
    ("a", ">i4"),
    ("key", ">i8"),
    ("b", ">i4"),
    ("person", ">i8"),
    ("c", ">i4"),
]
END = b"\xff\xff"

# Of rows to insert: the table, its columns, and how many rows it gets.
Shape = tuple[str, tuple[str, ...], int]


def append_rows(connection: Connection, rows: Rows) -> None:
    """Insert rows, whose tables are in the order in which they need each other."""
    tables = [table for table, some in rows.items() if some]
    if any(len(rows[table]) >= COPIED_ROWS for table in tables):
        for table in tables:
            copy_rows(connection, table, rows[table])
    elif tables:
        shapes = tuple((table.name, tuple(rows[table][0]), len(rows[table])) for table in tables)
        values = [value for table in tables for row in adapt(table, rows[table]) for value in row]
        connection.exec_driver_sql(write_insert(shapes), tuple(values))


def copy_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows by COPY, which is several times as fast as INSERT."""
    driver: Any = connection.connection.dbapi_connection
    copy = f"COPY {table.name} ({', '.join(rows[0])}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(copy) as target:
        target.set_types([name_type(table.columns[name]) for name in rows[0]])
        for row in adapt(table, rows):
            target.write_row(row)


def copy_faces(connection: Connection, collection: Collection, rows: int) -> Iterator[FaceBlock]:
    """All faces of a collection in the order of their keys, by binary COPY, in blocks of up to `rows`.

    All rows have the same length, so that a block of them is read as one array.
    """
    driver: Any = connection.connection.dbapi_connection
    wanted = f"SELECT key, person, embedding FROM faces WHERE collection = {collection.key} ORDER BY key"
    layout = np.dtype([*COPIED_FACE, ("embedding", "<f4", collection.dimension)])
    with driver.cursor() as cursor, cursor.copy(f"COPY ({wanted}) TO STDOUT (FORMAT BINARY)") as source:
        received = (bytes(each) for each in source)
        faces = (face for face in chain([next(received)[HEADER_BYTES:]], received) if face not in (b"", END))
        while some := list(islice(faces, rows)):
            if any(len(face) != layout.itemsize for face in some):
                raise damaged("an embedding is too short or too long")
            block = np.frombuffer(b"".join(some), layout)
            keys, people = (block[name].astype(np.int64) for name in ("key", "person"))
            yield FaceBlock(keys, people, np.ascontiguousarray(block["embedding"]))


def name_type(column: Column[Any]) -> str:
    """What PostgreSQL calls the type of a column."""
    return next(name for kind, name in TYPES.items() if isinstance(column.type, kind))


def adapt(table: Table, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """The values of rows as the driver wants them; None is null in a column of JSON that may be null."""
    names = list(rows[0])
    is_json = [isinstance(table.columns[name].type, JSON) for name in names]
    if not any(is_json):
        yield from ([row[name] for name in names] for row in rows)
        return
    may_lack = [bool(table.columns[name].nullable) for name in names]
    for row in rows:
        yield [
            Json(row[name]) if json and not (null and row[name] is None) else row[name]
            for name, json, null in zip(names, is_json, may_lack, strict=True)
        ]


@lru_cache(SHAPES)
def write_insert(shapes: Sequence[Shape]) -> str:
    """One statement that inserts rows of these shapes, each value a placeholder."""
    inserts = [
        f"INSERT INTO {name} ({', '.join(columns)}) VALUES "
        + ", ".join([f"({', '.join(['%s'] * len(columns))})"] * count)
        for name, columns, count in shapes
    ]
    before = ", ".join(f"i{place} AS ({insert})" for place, insert in enumerate(inserts[:-1]))
    return f"WITH {before} {inserts[-1]}" if before else inserts[-1]


def draw_keys(connection: Connection, counts: Mapping[Table, int]) -> list[list[int]]:
    """For each table as many new keys as `counts` says, in rising order, all in one statement."""
    drawn: list[list[int]] = [[] for _ in counts]
    statement = draw_from(tuple(table.name for table in counts))
    for place, key in connection.exec_driver_sql(statement, tuple(counts.values())):
        drawn[place].append(key)
    return drawn


@lru_cache(SHAPES)
def draw_from(tables: Sequence[str]) -> str:
    """One statement that draws keys of these tables, with a placeholder for each number of keys."""
    return " UNION ALL ".join(
        f"SELECT {place}, nextval(pg_get_serial_sequence('{name}', '{COUNTED[name]}'))"
        " FROM generate_series(1, %s)"
        for place, name in enumerate(tables)
    )
