"""Proves that the store is sound and that its indexes agree with it; counters and indexes can be repaired."""

import dataclasses
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass

import numpy as np

from sameface.model.data_folder import GalleryPlace, MilvusAddress
from sameface.model.errors import CollectionNotFound, StoreDamaged, UpkeepRunning
from sameface.model.faces import are_unit
from sameface.model.gallery.index.faiss.collection_indexes import CollectionIndexes, open_indexes
from sameface.model.gallery.index.faiss.face_index import FaceIndex
from sameface.model.gallery.index.faiss.snapshot import SnapshotRefused, read_sequence
from sameface.model.store.drafts import drafting, drop_drafts, list_drafts
from sameface.model.store.records import Collection, FaceBlock
from sameface.model.store.soundness import (
    count_foreign,
    count_rows,
    find_misfits,
    has_every_change,
    recount,
)
from sameface.model.store.store import Store
from sameface.model.upkeep.check_milvus import compare_with_milvus, fill_milvus

NAMED = 5  # people that a finding names
BACKUP = "stop the server and restore a backup"
AFRESH = "export the collection and import it under another name, or restore a backup"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in the store or in an index; `collection` is None for the whole gallery."""

    collection: str | None
    code: str
    detail: str
    repaired: bool = False


def check_gallery(
    place: GalleryPlace,
    name: str | None = None,
    *,
    repair: bool = False,
    milvus: MilvusAddress | None = None,
) -> list[Finding]:
    """The findings about a gallery or the collection `name`; with `repair`, the repaired ones come first.

    With the address of `milvus`, what it has is compared with the store, and otherwise FAISS's snapshots.
    """
    try:
        with closing(Store(place)) as store:
            findings = inspect_gallery(store, name, milvus)
            if not repair or not findings:
                return findings
            store.refuse_read_only()
            for finding in findings:
                repair_finding(store, finding, milvus)
            left = inspect_gallery(store, name, milvus)
    except StoreDamaged as error:
        return [Finding(None, "database", f"{error.facts['reason']}: {BACKUP}")]
    still = {(finding.collection, finding.code) for finding in left}
    gone = [finding for finding in findings if (finding.collection, finding.code) not in still]
    return [dataclasses.replace(finding, repaired=True) for finding in gone] + left


def inspect_gallery(store: Store, name: str | None, milvus: MilvusAddress | None) -> list[Finding]:
    """The findings about a gallery or one collection; only reads, so a server may run meanwhile."""
    with store.frozen() as connection:
        if damage := store.find_damage(connection):  # nothing else in the file can be trusted
            return [Finding(None, "database", f"{fault}: {BACKUP}") for fault in damage]
        orphans = store.count_orphans(connection)
    findings = [Finding(None, "orphans", f"{orphans} rows belong to nothing: {BACKUP}")] if orphans else []
    with closing(open_indexes(store)) as indexes:
        for each in [name] if name else [collection.name for collection in store.collections.page()]:
            with nullcontext() if name else suppress(CollectionNotFound):  # it was deleted meanwhile
                found = inspect_collection(store, None if milvus else indexes, each)
                if milvus and not any(finding.code == "embeddings" for finding in found):
                    found += inspect_milvus(store, milvus, each)
                findings += found
    return findings if name else findings + find_leftovers(store)


def inspect_collection(store: Store, indexes: CollectionIndexes | None, name: str) -> list[Finding]:
    """The findings about one collection, in one snapshot of the store, and about its index, if it has one."""
    findings = []

    def find(code: str, detail: str) -> None:
        findings.append(Finding(name, code, detail))

    with store.frozen() as connection:
        collection = store.collections.get(name)
        people, faces = count_rows(connection, collection)
        if (people, faces) != (collection.people, collection.faces):
            counted = f"{collection.people} people and {collection.faces} faces"
            find("counters", f"it counts {counted}, and has {people} and {faces}")
        if not has_every_change(connection, collection):
            first = collection.compacted + 1
            find("changes", f"its changes are not numbered {first} to {collection.revision}: {AFRESH}")
        if foreign := count_foreign(connection, collection):
            find("identity", f"{foreign} faces are of another recogniser: {BACKUP}")
        if misfits := find_misfits(connection, collection):
            find("embeddings", describe_misfits(store, collection, misfits))
            return findings  # no index can read these embeddings
        if indexes:
            findings += inspect_index(store, indexes, collection)
    return findings


def inspect_milvus(store: Store, milvus: MilvusAddress, name: str) -> list[Finding]:
    """The findings about what Milvus has of a collection, and about embeddings that it should not have."""
    findings, collection = [], store.collections.get(name)
    misfits: list[int] = []
    for block in store.changes.all_faces(collection):
        misfits += block.faces[~are_unit(block.embeddings)].tolist()
    if misfits:
        findings.append(Finding(name, "embeddings", describe_misfits(store, collection, misfits)))
    if difference := compare_with_milvus(store, milvus, name):
        findings.append(Finding(name, "index", difference))
    return findings


def inspect_index(store: Store, indexes: CollectionIndexes, collection: Collection) -> list[Finding]:
    """Load the index as a server would, and compare every row with the store; returns the findings."""
    findings, held = [], None
    saved = read_sequence(indexes.path_of(collection), indexes.owner_of(collection))
    try:
        if (
            not collection.revision < saved <= store.changes.latest(collection)
        ):  # otherwise a server has just written a newer one
            held = indexes.load(collection)
    except (SnapshotRefused, OSError) as reason:
        findings.append(Finding(collection.name, "snapshot", f"its snapshot is refused: {reason}"))
    comparison = Comparison((held or indexes.build(collection)).index)
    misfits: list[int] = []
    for block in store.changes.all_faces(collection):
        misfits += block.faces[~are_unit(block.embeddings)].tolist()
        comparison.add(block)
    if misfits:
        findings.append(Finding(collection.name, "embeddings", describe_misfits(store, collection, misfits)))
    if difference := comparison.describe():
        findings.append(Finding(collection.name, "index", difference))
    return findings


class Comparison:
    """Compares the living rows of an index with the store's faces, added in the order of their keys."""

    def __init__(self, index: FaceIndex) -> None:
        self.index = index
        self._rows = np.flatnonzero(index.columns.alive)
        self._keys = index.columns.faces[self._rows]
        self._seen = self._lacking = self._extra = self._different = 0

    def add(self, stored: FaceBlock) -> None:
        """Compare the next faces of the store, to the last bit."""
        stop = int(np.searchsorted(self._keys, stored.faces[-1], "right"))
        held = self.index.columns.block(self._rows[self._seen : stop])
        both, here, there = np.intersect1d(held.faces, stored.faces, assume_unique=True, return_indices=True)
        bits = held.embeddings[here].view(np.uint32) != stored.embeddings[there].view(np.uint32)
        other = held.people[here] != stored.people[there]
        self._seen = stop
        self._lacking += len(stored.faces) - len(both)
        self._extra += len(held.faces) - len(both)
        self._different += int((bits.any(axis=1) | other).sum())

    def describe(self) -> str:
        """The differences in words; empty if there are none."""
        extra = self._extra + len(self._keys) - self._seen
        entries, rows = self.index.faiss_index, self.index.columns.count
        parts = [
            f"lacks {self._lacking} faces" if self._lacking else "",
            f"has {extra} that are gone" if extra else "",
            f"has {self._different} that differ" if self._different else "",
            f"searches {entries.ntotal} of {rows} rows" if entries and entries.ntotal != rows else "",
        ]
        found = ", ".join(part for part in parts if part)
        return f"its index {found}; if --repair does not help: {AFRESH}" if found else ""


def describe_misfits(store: Store, collection: Collection, faces: list[int]) -> str:
    """A sentence about faces with invalid embeddings, which names some of their people."""
    _, owners = store.lookups.owners_of(collection, faces[: 10 * NAMED])
    named = sorted({owner.person_id for owner in owners.values()})[:NAMED]
    return (
        f"{len(faces)} faces have no unit embedding of the right length, of {', '.join(named)}"
        f"{' and others' if len(faces) > len(named) else ''}: forget these people or restore a backup"
    )


def find_leftovers(store: Store) -> list[Finding]:
    """A finding for each draft that a stopped command left; none while an import or reembed runs."""
    try:
        # Nobody makes a draft in a folder that may only be read, and its lock cannot be taken.
        with nullcontext() if store.read_only else drafting(store):
            drafts = list_drafts(store)
    except UpkeepRunning:
        return []
    detail = "a command that was stopped left {} faces: run it again, or --repair deletes them"
    return [Finding(draft.draft_of, "leftover", detail.format(draft.faces)) for draft in drafts]


def repair_finding(store: Store, finding: Finding, milvus: MilvusAddress | None) -> None:
    """Recount counters, rebuild an index from the store, or delete leftover drafts; other faults stay."""
    if finding.code not in ("counters", "snapshot", "index", "leftover"):
        return
    name = finding.collection or ""
    if finding.code == "leftover":
        with drafting(store):
            drop_drafts(store, name)
        return
    with suppress(CollectionNotFound):  # the collection was deleted meanwhile
        collection = store.collections.get(name)
        if finding.code == "counters":
            with store.writing() as connection:
                recount(connection, collection)
        elif milvus:
            fill_milvus(store, milvus, collection)
        else:
            with closing(open_indexes(store)) as indexes:
                indexes.renew(collection)
