"""Faces that Milvus still has although the store has them no more.

A feeder that is killed or cut off may have requests under way, which arrive after those of its successor. So
a face may come back that was deleted since. No search answers it, but what is deleted must not stay.
"""

from collections.abc import Iterator

import numpy as np

from sameface.model.faces import Keys
from sameface.model.gallery.index.milvus.faces_in_milvus import FacesInMilvus
from sameface.model.store.records import Collection
from sameface.model.store.store import Store


def find_gone(store: Store, faces: FacesInMilvus, collection: Collection) -> Iterator[Keys]:
    """The keys of faces in Milvus that the store does not have, block by block; no key is ever used again."""
    for keys in faces.list_keys(collection.key):
        yield np.setdiff1d(keys, store.changes.find_faces(collection, keys).faces)
