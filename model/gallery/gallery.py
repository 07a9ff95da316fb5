"""The people of all collections as one recogniser sees them: store and index as one thing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sameface.model.bundles.bundle import Bundle
from sameface.model.data_folder import DataFolder, GalleryPlace, MilvusAddress
from sameface.model.decision.calibration_files import Calibrations, share_files
from sameface.model.decision.thresholds import Rule, Threshold, Thresholds
from sameface.model.errors import CollectionNotFound, ModelMismatch, PersonNotFound
from sameface.model.faces import Embedding, Floats
from sameface.model.gallery.candidates import Candidates
from sameface.model.gallery.index.faiss.candidates import select_search_device
from sameface.model.gallery.index.search_engine import SearchEngine, open_engine
from sameface.model.gallery.known_owners import KnownOwners
from sameface.model.gallery.roster import Roster
from sameface.model.observer import SILENT, Observer
from sameface.model.parallel import Threads
from sameface.model.pipeline import Pipeline
from sameface.model.runtime.device import available_cores
from sameface.model.store.records import (
    Binding,
    Collection,
    CollectionState,
    NewPerson,
    RememberedResponse,
    refuse_invalid_id,
)

if TYPE_CHECKING:
    from sameface.model.access.audit.decisions import Decisions

ROLES = {  # of a server, and what it leaves to others
    "all": "",
    "search": "This server searches and takes no changes: send them to one with the role `write` or `all`.",
    "write": "This server takes changes and searches nothing: ask one with the role `search` or `all`.",
}
MILVUS_SEARCHERS = 16  # threads that wait for Milvus


class Gallery(Roster):
    """A roster that also enrols and searches, with the embeddings of one recogniser."""

    def __init__(
        self,
        place: GalleryPlace,
        bundle: Bundle,
        device: str = "cpu",
        thresholds: Thresholds | None = None,
        observer: Observer = SILENT,
        role: str = "all",
        milvus: MilvusAddress | None = None,
    ) -> None:
        super().__init__(place, observer)
        self.bundle = bundle
        self.milvus = milvus
        self.searches = role != "write"  # else it keeps no index
        self.device = device
        self.thresholds = thresholds or Thresholds(Calibrations(bundle))
        # With FAISS, more than cores would only take turns; but a batch may have two of them.
        self.searchers = Threads(MILVUS_SEARCHERS if milvus else available_cores() + 1, "search")
        if role != "all":
            (self.writers if role == "search" else self.searchers).refuse(ROLES[role])
        self.decisions: Decisions | None = None  # of a server, which keeps them in the audit
        self._indexes: SearchEngine | None = None
        self._owners: dict[int, KnownOwners] = {}
        # By name: the collection as it was searched last, and whether it was the same the time before.
        self._searched: dict[str, tuple[Collection, bool]] = {}

    @property
    def indexes(self) -> SearchEngine:
        """The indexes of the store's collections."""
        if self._indexes is None:
            store = self.store
            with self._opening:
                self._indexes = self._indexes or open_engine(store, self.device, self.milvus, self.bundle)
        return self._indexes

    def load(self) -> None:
        """Load the indexes of all collections of this recogniser, so that the first search is not slower.

        Raises if another machine that shares the gallery would decide differently.
        """
        self.store.refuse_read_only()
        share_files(self.bundle, self.store)
        own = [each for each in self.store.collections.page() if each.identity == self.bundle.identity]
        self.indexes.warm_up(own if self.searches else [])

    def close(self) -> None:
        """Save the indexes, finish the calls that run, write their decisions, and close the store."""
        self.searchers.close()
        if self.decisions:
            self.decisions.close()
        try:
            if self._indexes:
                self._indexes.close()
        finally:
            super().close()

    def create_collection(
        self, name: str, *, store_crops: bool = False, calibration: str | None = None, reviewers: int = 0
    ) -> tuple[Collection, bool]:
        """The collection, bound to this recogniser, and whether it is new."""
        refuse_invalid_id(name, "collection")
        if calibration is not None:
            calibration = self.thresholds.calibrations.get(calibration).name
        contract = self.bundle.contract
        binding = Binding(
            bundle=contract.name,
            identity=self.bundle.identity,
            dimension=contract.dimension or 0,
            store_crops=store_crops,
            calibration=calibration,
            reviewers=reviewers,
        )
        return self.store.collections.create(name, binding)

    def get_collection(self, name: str) -> Collection:
        """The collection `name`; raises if it belongs to another recogniser."""
        collection = super().get_collection(name)
        if collection.identity != self.bundle.identity:
            here = self.bundle.contract.name
            raise ModelMismatch(
                f"The collection {name!r} belongs to {collection.bundle}, and {here} runs here.",
                model=collection.bundle,
            )
        return collection

    def read_collection(self, collection: str | Collection) -> Collection:
        """The collection as it is now, if this is its name; one that a request has read stays as it is."""
        return self.get_collection(collection) if isinstance(collection, str) else collection

    def get_or_create_collection(self, name: str, *, store_crops: bool = False) -> Collection:
        """The collection `name`, made with `store_crops` if it does not exist."""
        try:
            return self.get_collection(name)
        except CollectionNotFound:
            return self.create_collection(name, store_crops=store_crops)[0]

    def delete_collection(self, name: str) -> None:
        """Delete a collection with all its people and faces, and its index."""
        self.store.collections.delete(name)
        self.indexes.forget_deleted()
        self._owners.clear()
        self._searched.clear()

    def _forget_snapshot(self, collection: Collection) -> None:  # noqa: ARG002
        """Start the background work that removes deleted faces from files or from Milvus."""
        self.indexes.keep_forgetting()

    def index_kind(self, collection: Collection) -> str:
        """How the collection is searched: `exact`, `codes`, `exact on gpu` or `milvus`."""
        return self.indexes.kind_of(collection)

    def get_embeddings(self, collection: Collection, person_id: str) -> dict[str, Embedding]:
        """The embeddings of a person's faces by face id, to verify a photo against."""
        found = self.get_own_embeddings(collection, [person_id])[person_id]
        if not found:
            raise PersonNotFound(f"There is no person {person_id!r} with a face in {collection.name!r}.")
        return {face_id: Embedding(values, collection.identity) for face_id, values in found.items()}

    def enroll(
        self,
        collection: Collection,
        newcomers: Sequence[NewPerson],
        responses: Sequence[RememberedResponse] = (),
    ) -> dict[str, RememberedResponse]:
        """Enrol all newcomers or none; once this returns, every search of every process finds them.

        Responses are remembered with their newcomers. A newcomer whose idempotency key was used meanwhile is
        not enrolled; the response that was remembered for it is returned, by its key.
        """
        return self.store.people.enroll(collection, newcomers, responses)

    def search(
        self, collection: Collection, probes: Floats, limit: int, fusion: str = "max", *, exact: bool = False
    ) -> Candidates:
        """For each probe (row) up to `limit` people, most similar first: by their best face or their mean.

        Everybody can be found who was enrolled when the collection was read, and nobody who is deleted. If
        it is to be `exact`, every face is compared in full, in large collections too.
        """
        return self._search_and_look(collection, probes, limit, fusion, exact=exact)[1]

    def search_newest(
        self,
        collection: str | Collection,
        probes: Floats,
        limit: int,
        fusion: str = "max",
        *,
        exact: bool = False,
    ) -> tuple[Collection, Candidates]:
        """The collection as it is now, if this is its name, and for each probe up to `limit` of its people.

        One that did not change between the last two searches is not read first: whether it has changed since
        is read with the names of the people who were found. If it has, it is searched again.
        """
        options: tuple[Floats, int, str] = (probes, limit, fusion)
        if isinstance(collection, Collection):
            return collection, self.search(collection, *options, exact=exact)
        last, steady = self._searched.get(collection, (None, False))
        if last and steady:
            state, candidates = self._search_and_look(last, *options, exact=exact)
            if state == last.state:
                return last, candidates
        newest = self.get_collection(collection)
        self._searched[collection] = newest, last is not None and newest.state == last.state
        return newest, self.search(newest, *options, exact=exact)

    def _search_and_look(
        self, collection: Collection, probes: Floats, limit: int, fusion: str, *, exact: bool
    ) -> tuple[CollectionState | None, Candidates]:
        """The collection's state when people were named, and the candidates of each probe."""
        if not len(probes):
            return None, Candidates.none()
        most = min(limit, collection.people)  # a search for more than there are would compare everything
        hits = self.indexes.search(collection, probes, most, fusion, exact=exact)
        state, owners = self._get_owners(collection).find(hits.faces.ravel().tolist())
        return state, Candidates.of(hits, owners)

    def _get_owners(self, collection: Collection) -> KnownOwners:
        """The owners of the collection's faces; those of collections that were deleted are dropped."""
        if collection.key not in self._owners:
            kept = self.store.collections.all_keys()
            owners, searched = list(self._owners.items()), list(self._searched.items())  # others add to them
            self._owners = {key: each for key, each in owners if key in kept}
            self._searched = {name: each for name, each in searched if each[0].key in kept}
        return self._owners.setdefault(collection.key, KnownOwners(self.store, collection))

    def choose_threshold(self, collection: Collection, rule: Rule, fusion: str = "max") -> Threshold:
        """The threshold to search all people of a collection; raises if the rate is not supported."""
        size = {"people": collection.people, "faces": collection.faces}
        return self.thresholds.for_gallery(rule, **size, fusion=fusion, calibration=collection.calibration)


def open_gallery(folder: DataFolder, pipeline: Pipeline, role: str = "all") -> Gallery:
    """The gallery of a pipeline's recogniser, searched by Milvus, or where the recogniser runs.

    With the `role` search it takes no changes, with the role write it searches nothing.
    """
    embedder = pipeline.embedder
    device = select_search_device(embedder.sessions.device, pipeline.options.device)
    observed = pipeline.thresholds, pipeline.observer
    return Gallery(folder.gallery, embedder.bundle, device, *observed, role, folder.milvus)
