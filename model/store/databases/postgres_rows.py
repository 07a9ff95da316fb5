"""How PostgreSQL takes rows: a few of several tables by one statement, many by COPY; and draws keys."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

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

from sameface.model.store.databases.database import Rows
from sameface.model.store.databases.tables import COUNTED

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
