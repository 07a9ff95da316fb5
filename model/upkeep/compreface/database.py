"""Reads CompreFace's own database, in PostgreSQL; nothing in it is changed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sameface.model.upkeep.compreface.source import Example, Service
from sameface.model.upkeep.errors import ComprefaceRefused

EXAMPLES_AT_ONCE = 1000
FIRST = "00000000-0000-0000-0000-000000000000"
CONNECT_SECONDS = 10

SERVICES = """
    SELECT model.name, model.api_key, count(embedding.id)
    FROM model
    LEFT JOIN subject ON subject.api_key = model.api_key
    LEFT JOIN embedding ON embedding.subject_id = subject.id
    WHERE model.type = 'R'
    GROUP BY model.id, model.name, model.api_key
    ORDER BY model.id
"""
SUBJECTS = "SELECT subject_name FROM subject WHERE api_key = %s ORDER BY subject_name"
EXAMPLES = """
    SELECT embedding.id::text, subject.subject_name
    FROM embedding JOIN subject ON subject.id = embedding.subject_id
    WHERE subject.api_key = %s AND embedding.id > %s
    ORDER BY embedding.id LIMIT %s
"""
PHOTOS = """
    SELECT embedding.id::text, img.content
    FROM embedding JOIN img ON img.id = embedding.img_id
    WHERE embedding.id = ANY(%s::uuid[])
"""


class ComprefaceDatabase:
    """All recognition services of a CompreFace, out of its tables."""

    def __init__(self, url: str) -> None:
        try:
            parameters: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS} | conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # quotes the URL, which may hold a password
            raise ComprefaceRefused(
                "`--database` takes the URL of CompreFace's database: "
                "postgresql://postgres:PASSWORD@HOST:5432/frs."
            ) from None
        with naming_the_reason():
            self._connection = psycopg.connect(**parameters, autocommit=True)
            self._connection.execute("SET default_transaction_read_only = on")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def list_services(self) -> list[Service]:
        """The recognition services, in the order in which they were made."""
        return [Service(*row) for row in self._select(SERVICES)]

    def list_subjects(self, service: Service) -> list[str]:
        """The names of a service's subjects, those without an example too."""
        return [name for (name,) in self._select(SUBJECTS, service.api_key)]

    def list_examples(self, service: Service) -> Iterator[Example]:
        """Yield the examples of a service in the order of their ids."""
        after = FIRST
        while page := self._select(EXAMPLES, service.api_key, after, EXAMPLES_AT_ONCE):
            yield from (Example(*row) for row in page)
            after = page[-1][0]

    def read_photos(self, service: Service, image_ids: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002
        """By image id: the photos; those that CompreFace did not keep are left out."""
        return {image_id: bytes(content) for image_id, content in self._select(PHOTOS, list(image_ids))}

    def _select(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with naming_the_reason():
            return self._connection.execute(statement, values).fetchall()


@contextmanager
def naming_the_reason() -> Iterator[None]:
    """Raise what the driver says about CompreFace's database as an error that a user can act on."""
    try:
        yield
    except psycopg.errors.UndefinedTable:
        raise ComprefaceRefused(
            "This database has no tables of CompreFace: theirs is called `frs` unless it was changed."
        ) from None
    except psycopg.Error as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ComprefaceRefused(f"CompreFace's database cannot be read: {reason}.") from None
