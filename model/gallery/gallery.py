"""Store and index as one thing: enrol, forget, search."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.bundles.bundle import Bundle
from sameface.model.decision.calibration_files import Calibrations
from sameface.model.decision.thresholds import Rule, Threshold, Thresholds
from sameface.model.errors import InvalidEmbedding, ModelMismatch, PersonNotFound
from sameface.model.faces import UNIT, Embedding, Floats
from sameface.model.gallery.index.collection_indexes import open_indexes
from sameface.model.gallery.index.faiss_search import select_search_device
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Binding, Collection, NewPerson, RememberedResponse
from sameface.model.store.store import Store
from sameface.model.verify import EnrolledPerson


@dataclass(frozen=True, slots=True)
class Candidate:
    """A person who may be the one on a probe, and the face that says so."""

    person_id: str
    name: str | None
    similarity: float
    face_id: str


def open_gallery(path: Path, pipeline: Pipeline) -> "Gallery":
    """The gallery of a pipeline's recogniser, searched where the recogniser runs."""
    embedder = pipeline.embedder
    device = select_search_device(embedder.sessions.device, pipeline.options.device)
    return Gallery(path, embedder.bundle, device, pipeline.thresholds)


class Gallery:
    """The people of all collections, as one recogniser sees them."""

    def __init__(
        self, path: Path, bundle: Bundle, device: str = "cpu", thresholds: Thresholds | None = None
    ) -> None:
        self.store = Store(path)
        self.bundle = bundle
        self.thresholds = thresholds or Thresholds(Calibrations(bundle))
        self.indexes = open_indexes(self.store, device)

    def load(self) -> None:
        """Read the indexes of all collections, so that no first search pays for it."""
        self.indexes.forget_deleted()
        for collection in self.store.collections.page():
            if collection.identity == self.bundle.identity:
                self.indexes.follow(collection)

    def close(self) -> None:
        """Save the indexes and let go of the file, in any case."""
        with closing(self.store):
            self.indexes.close()

    def create_collection(
        self, name: str, *, store_crops: bool = False, calibration: str | None = None
    ) -> tuple[Collection, bool]:
        """The collection, bound to this recogniser, and whether it is new."""
        if calibration is not None:
            calibration = self.thresholds.calibrations.get(calibration).name
        contract = self.bundle.contract
        binding = Binding(
            bundle=contract.name,
            identity=self.bundle.identity,
            dimension=contract.dimension or 0,
            store_crops=store_crops,
            calibration=calibration,
        )
        return self.store.collections.create(name, binding)

    def get_collection(self, name: str) -> Collection:
        """A collection that this recogniser's embeddings may be compared with."""
        collection = self.store.collections.get(name)
        if collection.identity != self.bundle.identity:
            here = self.bundle.contract.name
            raise ModelMismatch(
                f"The collection {name!r} belongs to {collection.bundle}, and {here} runs here.",
                model=collection.bundle,
            )
        return collection

    def delete_collection(self, name: str) -> None:
        """Forget a collection and everybody in it."""
        self.store.collections.delete(name)
        self.indexes.forget_deleted()

    def enrol(
        self,
        collection: Collection,
        newcomers: Sequence[NewPerson],
        answers: Sequence[RememberedResponse] = (),
    ) -> dict[str, RememberedResponse]:
        """Enrol all of them or none; once this returns, every search of every process finds them.

        Answers are remembered with their newcomers; one whose key was answered meanwhile is not enrolled, and
        that answer is returned, by its key.
        """
        return self.store.people.enroll(collection, newcomers, answers)

    def search(
        self, collection: Collection, probes: Sequence[Embedding], limit: int, fusion: str = "max"
    ) -> list[list[Candidate]]:
        """For each probe the most similar people, by their best face or their mean, best first.

        Everybody is found who was enrolled when the collection was read, and nobody who is deleted.
        """
        if not probes:
            return []
        index = self.indexes.follow(collection)
        search = {"max": index.search, "mean": index.search_means}[fusion]
        most = min(
            limit, collection.people
        )  # asked for more than there are, a search would compare everything
        found = search(np.stack([probe.values for probe in probes]), most)
        owners = self.store.people.owners_of([hit.face for hits in found for hit in hits])
        return [
            [
                Candidate(owner.person_id, owner.name, round(hit.similarity, 6), owner.face_id)
                for hit in hits
                if (owner := owners.get(hit.face))
            ]
            for hits in found
        ]

    def choose_threshold(self, collection: Collection, rule: Rule, fusion: str = "max") -> Threshold:
        """What counts as a match among as many people as there are now, or why that cannot be said."""
        return self.thresholds.for_gallery(
            rule,
            people=collection.people,
            faces=collection.faces,
            fusion=fusion,
            calibration=collection.calibration,
        )

    def get_enrolled(self, collection: Collection, person_id: str) -> EnrolledPerson:
        """A person with the embeddings of all faces, to verify a photo against."""
        found = self.store.people.embeddings_of(collection, [person_id])[person_id]
        if not found:
            raise PersonNotFound(f"There is no person {person_id!r} with a face in {collection.name!r}.")
        identity = self.bundle.identity
        return EnrolledPerson(
            person_id,
            {face_id: Embedding(values, identity) for face_id, values in found.items()},
            collection.calibration,
        )

    def take_embedding(self, values: Sequence[float] | Floats, made_by: str | None) -> Embedding:
        """An embedding that a client brought, at unit length, if this recogniser made it."""
        contract = self.bundle.contract
        if made_by not in (None, contract.name):
            raise ModelMismatch(
                f"The embedding is of {made_by}, and {contract.name} runs here.", model=contract.name
            )
        with np.errstate(over="ignore"):  # a number that is too large is infinite, and said to be
            embedding = np.asarray(values, np.float32)
        if embedding.shape != (contract.dimension,):
            raise InvalidEmbedding(f"An embedding of {contract.name} has {contract.dimension} numbers.")
        length = float(np.linalg.norm(embedding))
        if not np.isfinite(length) or length == 0:
            raise InvalidEmbedding("An embedding must be finite and not zero.")
        return Embedding(
            embedding / np.float32(length), self.bundle.identity, normalised=abs(length - 1) > UNIT
        )
