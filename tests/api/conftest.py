"""What tests of a gallery in PostgreSQL share."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, the_server


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server of PostgreSQL that no other module uses."""
    the_server()  # skips where there is none
    server = PostgresServer()
    yield server
    server.remove()
