"""The Milvus client alone, as its own documentation uses it: no store, no promises."""

from collections.abc import Sequence

from pymilvus import DataType, MilvusClient

from benchmarks.rivals.milvus_server import MilvusServer
from sameface.model.faces import Floats

FACES_ASKED = 35  # of which the people are told apart
ROWS_AT_ONCE = 5_000
NAME = "alone"


class MilvusAlone:
    """A collection on a Milvus server."""

    name = "Milvus's client alone"

    def __init__(self, server: MilvusServer, dimension: int) -> None:
        self._before = server.resident_bytes
        self._server = server
        self._client = MilvusClient(server.uri)
        schema = MilvusClient.create_schema(auto_id=True)
        schema.add_field("face", DataType.INT64, is_primary=True)
        schema.add_field("person", DataType.VARCHAR, max_length=64)
        schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=dimension)
        index = MilvusClient.prepare_index_params()
        index.add_index("embedding", index_type="AUTOINDEX", metric_type="COSINE")
        self._client.create_collection(NAME, schema=schema, index_params=index)

    def add(self, people: Sequence[str], faces: Floats) -> None:
        """Insert people with their faces (people, faces, dimension)."""
        rows = [
            {"person": person, "embedding": face}
            for person, own in zip(people, faces, strict=True)
            for face in own
        ]
        for first in range(0, len(rows), ROWS_AT_ONCE):
            self._client.insert(NAME, rows[first : first + ROWS_AT_ONCE])

    def finish(self) -> None:
        """Have Milvus write its segments, of which it then builds indexes."""
        self._client.flush(NAME)

    def find(self, probes: Floats, limit: int) -> list[list[str]]:
        """The people nearest to each probe."""
        found = self._client.search(
            NAME,
            data=list(probes),
            anns_field="embedding",
            limit=FACES_ASKED,
            output_fields=["person"],
            consistency_level="Bounded",
        )
        return [list(dict.fromkeys(hit["entity"]["person"] for hit in hits))[:limit] for hits in found]

    def forget(self, person: str) -> None:
        """Delete a person."""
        self._client.delete(NAME, filter=f"person == '{person}'")

    def measure_memory(self) -> int:
        """The bytes that the server's memory has grown by."""
        return self._server.resident_bytes - self._before

    def close(self) -> None:
        """Drop the collection."""
        self._client.drop_collection(NAME)
        self._client.close()
