"""How PostgreSQL takes rows: a few of several tables by one statement, many by COPY; and draws keys."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, count, islice
from typing import Any

import numpy as np
import psycopg
from psycopg.types.json import Json
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    Update,
    bindparam,
    cast,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.types import TypeEngine

from sameface.model.store.databases.database import Rows, damaged
from sameface.model.store.databases.new_rows import list_values, write_insert
from sameface.model.store.databases.tables import COUNTED, REPLACED
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
Shape = tuple[Table, tuple[str, ...], int]


def append_rows(connection: Connection, rows: Rows) -> None:
    """Insert rows, whose tables are in the order in which they need each other."""
    tables = [table for table, some in rows.items() if some]
    if any(len(rows[table]) >= COPIED_ROWS for table in tables):
        for table in tables:
            if table not in REPLACED:  # COPY only adds
                copy_rows(connection, table, rows[table])
        tables = [table for table in tables if table in REPLACED]
    if tables:
        shapes = tuple((table, tuple(rows[table][0]), len(rows[table])) for table in tables)
        values = [value for table in tables for row in list_values(table, rows[table], Json) for value in row]
        driver: Any = connection.connection.dbapi_connection
        psycopg.RawCursor(driver).execute(write_inserts(shapes), values)  # sent as it is


def copy_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows by COPY, which is several times as fast as INSERT."""
    driver: Any = connection.connection.dbapi_connection
    copy = f"COPY {table.name} ({', '.join(rows[0])}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(copy) as target:
        target.set_types([name_type(table.columns[name]) for name in rows[0]])
        for row in list_values(table, rows, Json):
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


@lru_cache(SHAPES)
def write_inserts(shapes: Sequence[Shape]) -> str:
    """One statement that inserts rows of these shapes, each value a placeholder."""
    numbers = count(1)
    inserts = []
    for table, columns, many in shapes:
        rows = [[f"${next(numbers)}" for _ in columns] for _ in range(many)]
        inserts.append(write_insert(table, columns, rows))
    before = ", ".join(f"i{place} AS ({insert})" for place, insert in enumerate(inserts[:-1]))
    return f"WITH {before} {inserts[-1]}" if before else inserts[-1]


@cache
def add_keys(statement: Update, drawn: tuple[tuple[Table, str], ...]) -> Update:
    """The UPDATE of one row, which also returns new keys: per table, as many as the value `name` says."""
    return statement.returning(*(draw_keys(table, name) for table, name in drawn))


def draw_keys(table: Table, name: str) -> ColumnElement[Any]:
    """An array of new keys of a table, as many as the value `name` says, in rising order."""
    name_of_sequence = func.pg_get_serial_sequence(table.name, COUNTED[table.name])
    sequence = select(cast(name_of_sequence, REGCLASS)).scalar_subquery()  # found once, not for each key
    numbers = func.generate_series(1, bindparam(name)).table_valued("number")
    return func.array(select(func.nextval(sequence)).select_from(numbers).scalar_subquery())
