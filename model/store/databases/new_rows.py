"""Rows to insert, as the drivers of both databases take them: many at once, past SQLAlchemy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import JSON, Table

from sameface.model.store.databases.tables import REPLACED


def write_insert(table: Table, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The INSERT of rows of placeholders; one into a table of `REPLACED` replaces a row of the same key."""
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}"
    if table not in REPLACED:
        return statement
    changes = ", ".join(f"{name} = excluded.{name}" for name in REPLACED[table])
    return f"{statement} ON CONFLICT ({table.primary_key.columns[0].name}) DO UPDATE SET {changes}"


@cache
def read_columns(
    table: Table, names: tuple[str, ...]
) -> tuple[Callable[[Mapping[str, Any]], tuple[Any, ...]], list[tuple[int, bool]]]:
    """What reads the columns `names` of a row, and the places of JSON with whether each may be null."""
    columns = enumerate(table.columns[name] for name in names)
    in_json = [(place, bool(column.nullable)) for place, column in columns if isinstance(column.type, JSON)]
    return itemgetter(*names), in_json  # a tuple: no table has one column alone


def list_values(
    table: Table, rows: Sequence[Mapping[str, Any]], to_json: Callable[[Any], Any]
) -> Iterator[list[Any]]:
    """The values of each row, those of JSON by `to_json`; None is null where JSON may be null."""
    values_of, in_json = read_columns(table, tuple(rows[0]))
    for row in rows:
        values = list(values_of(row))
        for place, nullable in in_json:
            if not (nullable and values[place] is None):
                values[place] = to_json(values[place])
        yield values
