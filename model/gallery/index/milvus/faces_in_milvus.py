"""One collection in Milvus: the faces of one recogniser in one gallery, with their embeddings.

An entity has the key of a face, the key of the face's collection (Milvus's partition key) and the embedding.
A mark is an entity with a random negative key: once Milvus shows it, it shows all that was sent before.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient, MilvusException
from pymilvus.client.types import LoadState
from pymilvus.exceptions import ConnectionConfigException, ParamError

from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexRefused, IndexUnavailable, SamefaceError
from sameface.model.faces import Floats, Keys
from sameface.model.store.records import FaceBlock

SECONDS = 5.0  # that Milvus may take to answer
FEED_SECONDS = 120.0  # and to take what it is sent, or to load a collection
RETRY_SECONDS = 2
ROWS_AT_ONCE = 2_000  # sent in one request, which may have 64 MB
MOST_HITS = 16_384  # of one probe: Milvus's own limit

NOT_FOUND = 100  # Milvus's code for a collection that does not exist
FORBIDDEN = ("unauthenticated", "auth check", "permission")  # in what Milvus says if a token is wrong


class FacesInMilvus:
    """The faces of one recogniser in Milvus, connected when they are first needed; safe for any thread."""

    def __init__(self, address: MilvusAddress, name: str, dimension: int) -> None:
        self.name = name
        self._address = address
        self._dimension = dimension
        self._client: Any = None  # a MilvusClient, once connected
        self._connecting = threading.Lock()
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs tracebacks, hosts and requests

    def close(self) -> None:
        """Close the connection."""
        with self._connecting:
            if self._client:
                self._client.close()
            self._client = None

    def read_version(self) -> str:
        """The version of the server, or of Milvus Lite."""
        with self._connected() as client:
            return str(client.get_server_version(timeout=SECONDS))

    def exists(self) -> bool:
        """Whether the collection exists; raises if its embeddings have another dimension."""
        with self._connected() as client:
            if not client.has_collection(self.name, timeout=SECONDS):
                return False
            fields = client.describe_collection(self.name, timeout=SECONDS)["fields"]
        if fields != self._describe_fields(fields):
            raise IndexRefused(
                f"Milvus has a collection {self.name} of another shape or dimension: drop it, and it is made "
                "and filled again."
            )
        return True

    def create(self) -> None:
        """Make the collection and load it into Milvus's memory; it may exist."""
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("face", DataType.INT64, is_primary=True)
        schema.add_field("collection", DataType.INT64, is_partition_key=True)
        schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=self._dimension)
        index = MilvusClient.prepare_index_params()
        index.add_index("embedding", index_type="AUTOINDEX", metric_type="COSINE")
        with self._connected() as client:
            client.create_collection(
                self.name,
                schema=schema,
                index_params=index,
                consistency_level="Bounded",
                timeout=FEED_SECONDS,
            )

    def drop(self, name: str) -> None:
        """Drop another collection of Milvus's, if it is there."""
        with self._connected() as client:
            if client.has_collection(name, timeout=SECONDS):
                client.drop_collection(name, timeout=FEED_SECONDS)

    def load(self) -> None:
        """Have Milvus load the collection into its memory, unless it is there: Milvus Lite forgets to."""
        with self._connected() as client:
            if client.get_load_state(self.name, timeout=SECONDS)["state"] != LoadState.Loaded:
                client.load_collection(self.name, timeout=FEED_SECONDS)

    def search(self, collection: int, probes: Floats, count: int) -> Keys:
        """For each probe (row) the keys of `count` near faces of the collection, or of marks; -1 for none."""
        found = np.full((len(probes), count), -1, np.int64)
        with self._connected() as client:
            hits = client.search(
                self.name,
                data=list(probes),
                anns_field="embedding",
                filter=f"collection == {collection}",
                limit=count,
                output_fields=["face"],  # else Milvus Lite sends the embeddings
                consistency_level="Bounded",
                timeout=SECONDS,
            )
        for row, near in enumerate(hits):
            found[row, : len(near)] = [hit["entity"]["face"] for hit in near]
        return found

    def add(self, collection: int, came: FaceBlock) -> None:
        """Send faces that Milvus does not have: it would keep two of each."""
        for first in range(0, len(came.faces), ROWS_AT_ONCE):
            some = slice(first, first + ROWS_AT_ONCE)
            rows = [
                {"face": face, "collection": collection, "embedding": embedding}
                for face, embedding in zip(came.faces[some].tolist(), came.embeddings[some], strict=True)
            ]
            with self._connected() as client:
                client.insert(self.name, rows, timeout=FEED_SECONDS)

    def add_mark(self, collection: int, mark: int) -> None:
        """Insert the entity `mark` behind what was sent: once Milvus shows the mark, it shows that too."""
        direction = np.zeros((1, self._dimension), np.float32)
        direction[0, 0] = 1
        self.add(collection, FaceBlock(np.array([mark]), np.array([0]), direction))

    def delete(self, keys: Sequence[int]) -> None:
        """Delete entities by their keys, whether Milvus has them or not."""
        for first in range(0, len(keys), ROWS_AT_ONCE):
            with self._connected() as client:
                client.delete(self.name, ids=list(keys[first : first + ROWS_AT_ONCE]), timeout=FEED_SECONDS)

    def clear(self, collection: int) -> None:
        """Delete all entities of a collection."""
        with self._connected() as client:
            client.delete(self.name, filter=f"collection == {collection}", timeout=FEED_SECONDS)

    def find_marks(self, marks: Sequence[int]) -> set[int]:
        """Which of these marks Milvus has."""
        with self._connected() as client:
            rows = client.get(
                self.name,
                ids=list(marks),
                output_fields=["face"],
                consistency_level="Bounded",
                timeout=SECONDS,
            )
        return {row["face"] for row in rows}

    def get_embeddings(self, faces: Keys) -> dict[int, Floats]:
        """By key: the embeddings of those of `faces` that Milvus has, in its newest state."""
        with self._connected() as client:
            rows = client.get(
                self.name,
                ids=faces.tolist(),
                output_fields=["face", "embedding"],
                consistency_level="Strong",
                timeout=FEED_SECONDS,
            )
        return {row["face"]: np.array(row["embedding"], np.float32) for row in rows}

    def count(self, collection: int) -> int:
        """The number of faces of a collection in Milvus's newest state; marks do not count."""
        with self._connected() as client:
            [row] = client.query(
                self.name,
                filter=f"collection == {collection} and face > 0",
                output_fields=["count(*)"],
                consistency_level="Strong",
                timeout=FEED_SECONDS,
            )
        return int(row["count(*)"])

    def list_keys(self, collection: int) -> Iterator[Keys]:
        """The keys of all faces of a collection in Milvus's newest state, ascending, block by block."""
        last = 0
        while True:
            with self._connected() as client:
                rows = client.query(
                    self.name,
                    filter=f"collection == {collection} and face > {last}",
                    output_fields=["face"],
                    limit=ROWS_AT_ONCE,
                    consistency_level="Strong",
                    timeout=FEED_SECONDS,
                )
            if not rows:
                return
            keys = np.unique(np.array([row["face"] for row in rows], np.int64))
            yield keys
            last = int(keys[-1])

    def _describe_fields(self, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`fields`, as Milvus describes them, with the values that ours must have; equal if all do."""
        expected = {
            "face": {"type": DataType.INT64, "is_primary": True},
            "collection": {"type": DataType.INT64, "is_partition_key": True},
            "embedding": {"type": DataType.FLOAT_VECTOR, "params": {"dim": self._dimension}},
        }
        return [each | expected.pop(each["name"], {"type": None}) for each in fields] + [*expected.values()]

    @contextmanager
    def _connected(self) -> Iterator[MilvusClient]:
        """Yield the connected client; errors of Milvus become errors that a caller can act on."""
        client = self._client
        try:
            client = client or self._connect()
            yield client
        except (ConnectionConfigException, ParamError, ValueError):
            raise IndexRefused(
                "The address of Milvus is none: http://HOST:19530, https://HOST, or a file ending in .db."
            ) from None
        except (MilvusException, grpc.RpcError) as error:  # their sentences have addresses
            self._drop(client)
            raise name_failure(error) from None

    def _connect(self) -> MilvusClient:
        with self._connecting:
            if self._client is None:
                token = self._address.token or ""
                self._client = MilvusClient(uri=self._address.uri, token=token, timeout=SECONDS)
            return self._client

    def _drop(self, client: MilvusClient | None) -> None:
        """Have the next call connect anew: an old connection waits longer and longer between its tries."""
        with self._connecting:
            if client and self._client is client:
                self._client.close()
                self._client = None


def name_collection(store: str, identity: str) -> str:
    """The collection in Milvus of a gallery, by its store's id, and a recogniser, by its identity."""
    return f"sameface_{store[:16]}_{identity[:16]}"


def name_failure(error: Exception) -> SamefaceError:
    """The failure that a caller can act on: refused for good, or away for now. The address is in neither."""
    if any(word in f"{error} {error.__cause__}".lower() for word in FORBIDDEN):
        return IndexRefused("Milvus refuses the token, or lets its user do too little.")
    if getattr(error, "code", None) == NOT_FOUND:
        return unavailable("has lost what it had, and is being filled again")
    return unavailable("cannot be reached, or does not answer")


def unavailable(what: str) -> IndexUnavailable:
    """The error for Milvus while it is away, or not as far as it should be."""
    return IndexUnavailable(
        f"The search engine Milvus {what}: try again. All but searching goes on.",
        retry_after_seconds=RETRY_SECONDS,
    )
