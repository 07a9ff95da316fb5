"""The index of a collection of people, after its upkeep."""

from contextlib import closing
from pathlib import Path

from sameface.model.gallery.index.faiss.collection_indexes import CollectionIndexes
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.store.records import Binding, Collection
from sameface.model.store.store import Store

DIMENSION = 16
BINDING = Binding(bundle="tiny", identity="abc", dimension=DIMENSION)


def tended(store: Store, folder: Path, collection: Collection) -> FaceIndex:
    """The index after its upkeep, closed and saved."""
    with closing(CollectionIndexes(store, folder, "cpu")) as indexes:
        return indexes.follow(collection)
