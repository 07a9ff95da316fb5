"""What a gallery asks of a search engine, FAISS or Milvus: a cache of the store that is never the truth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sameface.model.bundles.bundle import Bundle
from sameface.model.data_folder import MilvusAddress
from sameface.model.errors import IndexRefused
from sameface.model.faces import Floats
from sameface.model.gallery.index.faiss.candidates import choose_kind
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.gallery.index.hits import Hits
from sameface.model.store.records import Collection
from sameface.model.store.store import Store

if TYPE_CHECKING:
    from sameface.model.gallery.index.milvus.milvus_engine import MilvusEngine


class SearchEngine(Protocol):
    """Searches the collections of a store, each at least at the revision at which it was read."""

    def warm_up(self, collections: Sequence[Collection]) -> None:
        """Load what makes the first search of these collections slow, and begin the upkeep."""

    def search(self, collection: Collection, probes: Floats, limit: int, fusion: str, *, exact: bool) -> Hits:
        """For each probe (row) up to `limit` people, most similar first: by their best face or their mean.

        Everybody can be found who was enrolled when the collection was read. If it is to be `exact`, every
        face is compared in full; an engine that cannot do that raises InvalidArgument.
        """

    def kind_of(self, collection: Collection) -> str:
        """How a collection is searched, in a word or two."""

    def lag_of(self, collection: Collection) -> int:
        """The number of changes that the index is behind."""

    def find_fault(self) -> str | None:
        """Why nothing can be searched now; None if it can."""

    def forget_deleted(self) -> None:
        """Drop what is kept of collections that are no longer in the store."""

    def keep_forgetting(self) -> None:
        """From now on, remove deleted faces from files and from Milvus within minutes, in the background."""

    def close(self) -> None:
        """End the upkeep, and save what a restart would have to make again."""


def open_engine(store: Store, device: str, milvus: MilvusAddress | None, bundle: Bundle) -> SearchEngine:
    """The engine for embeddings of the recogniser `bundle`: Milvus if there is an address, else FAISS."""
    if milvus is None:
        return open_indexes(store, device)
    return open_milvus(store, milvus, bundle.identity, bundle.contract.dimension or 0)


def expect_kind(collection: Collection, milvus: MilvusAddress | None = None) -> str:
    """How a collection is searched where no engine is open: by Milvus, or by FAISS on a CPU."""
    return "milvus" if milvus else choose_kind(collection.faces, "cpu")


def open_milvus(store: Store, address: MilvusAddress, identity: str, dimension: int) -> "MilvusEngine":
    """Milvus as the engine of a recogniser's collections; raises if its client is not installed."""
    try:
        from sameface.model.gallery.index.milvus.milvus_engine import MilvusEngine
    except ModuleNotFoundError as error:
        raise IndexRefused(
            "Searching with Milvus needs the extra `milvus` of sameface: install it."
        ) from error
    return MilvusEngine(store, address, identity, dimension)
