"""Whether a column has one of many values, which go to the database as one parameter.

So the statement is the same however many values there are: a server need not plan it again each time, and
there may be more of them than a statement may have parameters.
"""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Boolean, ColumnElement, Dialect, String, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


class Values(TypeDecorator[Iterable[Any]]):
    """Values of the type `item`: an array for PostgreSQL, JSON for SQLite, which has no arrays."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of column in which the database takes the values."""
        return ARRAY(self.item) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """The parameter for some values."""
        return list(value) if dialect.name == "postgresql" else json.dumps(list(value))


class OneOf(FunctionElement[bool]):
    """Whether `column` has one of the values of the parameter `name`."""

    type: Any = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        item = String() if isinstance(column.type, String) else BigInteger()
        super().__init__(column, bindparam(name, type_=Values(item)))

    def self_group(self, against: Any = None) -> "OneOf":  # noqa: ARG002
        """Itself: SQLAlchemy would compare it with 1 for SQLite, which then uses no index."""
        return self


@compiles(OneOf, "sqlite")
def compile_for_sqlite(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    """A comparison with what is read out of JSON."""
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"


@compiles(OneOf, "postgresql")
def compile_for_postgres(element: OneOf, compiler: SQLCompiler, **options: Any) -> str:
    """A comparison with an array."""
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY({values})"
