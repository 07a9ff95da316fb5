"""Compares what Milvus has of a collection with the store, face by face, while both may be written."""

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from sameface.model.data_folder import MilvusAddress
from sameface.model.faces import Keys
from sameface.model.gallery.index.search_engine import open_milvus
from sameface.model.store.records import Collection, FaceBlock
from sameface.model.store.store import Store

if TYPE_CHECKING:
    from sameface.model.gallery.index.milvus.faces_in_milvus import FacesInMilvus

CLOSE = 1e-6  # numbers of an embedding that count as equal


def compare_with_milvus(store: Store, milvus: MilvusAddress, name: str) -> str:
    """What is wrong with Milvus's part of the collection `name`, in words; empty if nothing is.

    What Milvus was not fed yet is no fault: searches compare it in memory.
    """
    collection = store.collections.get(name)
    with closing(open_milvus(store, milvus, collection.identity, collection.dimension)) as engine:
        return compare(store, engine.faces, collection)


def fill_milvus(store: Store, milvus: MilvusAddress, collection: Collection) -> None:
    """Have Milvus forget a collection, and send it anew."""
    with closing(open_milvus(store, milvus, collection.identity, collection.dimension)) as engine:
        engine.feeder.renew(collection)


def compare(store: Store, faces: "FacesInMilvus", collection: Collection) -> str:
    """What is wrong with Milvus's part of a collection, in words; empty if nothing is."""
    there, feed = faces.exists(), store.feeds.get(collection)  # raises if Milvus is away
    if not feed.mark:
        return ""
    if not there or not faces.find_marks([feed.mark]):
        return "Milvus has lost what it was fed: the servers of this gallery send it again"
    from sameface.model.gallery.index.milvus.gone_faces import find_gone  # of the extra `milvus`

    came: set[int] = set()
    gone = 0
    for changes in store.changes.since(collection, feed.sequence):
        came |= set(changes.came.faces.tolist())
        gone += len(changes.gone)
    lacking, different, found = [], 0, 0
    for block in store.changes.all_faces(collection):
        absent, differing = compare_block(faces, block)
        found += len(block.faces) - len(absent)
        different += differing
        lacking += [face for face in absent if face not in came]
    lacking = still_lacking(store, faces, collection, np.array(lacking, np.int64))
    since = store.changes.latest(collection) - collection.revision  # while this looked
    extra = faces.count(collection.key) - found - gone - since
    if extra > 0:  # some may be there twice, which does no harm
        extra = sum(len(keys) for keys in find_gone(store, faces, collection)) - gone - since
    parts = [
        f"lacks {len(lacking)} faces" if lacking else "",
        f"has {extra} that are gone" if extra > 0 else "",
        f"has {different} that differ" if different else "",
    ]
    described = ", ".join(part for part in parts if part)
    return f"Milvus {described}" if described else ""


def compare_block(faces: "FacesInMilvus", stored: FaceBlock) -> tuple[list[int], int]:
    """The keys of the stored faces that Milvus has not, and the number of those that differ there."""
    held = faces.get_embeddings(stored.faces)
    differing = sum(
        not np.allclose(held[face], embedding, atol=CLOSE)
        for face, embedding in zip(stored.faces.tolist(), stored.embeddings, strict=True)
        if face in held
    )
    return [face for face in stored.faces.tolist() if face not in held], differing


def still_lacking(store: Store, faces: "FacesInMilvus", collection: Collection, lacking: Keys) -> list[int]:
    """Those of `lacking` that the store still has and Milvus still has not."""
    if not len(lacking):
        return []
    return compare_block(faces, store.changes.find_faces(collection, lacking))[0]
