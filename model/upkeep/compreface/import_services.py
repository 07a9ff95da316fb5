"""Imports CompreFace's services: a service becomes a collection, a subject a person, an example a face.

Every photo is embedded anew. A run that was killed is finished by the next one, which finds collections by
their keys, people by their names and faces by their ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from sameface.engine import Engine
from sameface.model.enroll import Enrollment, EnrollRequest, enroll_many
from sameface.model.errors import InvalidArgument, PersonNotFound, SamefaceError, UnreadableImage
from sameface.model.observer import Progress, ignore_progress
from sameface.model.store.people.person_ids import choose_id
from sameface.model.store.records import MAX_NAME, Collection, NewPerson, is_id
from sameface.model.upkeep.compreface.alias import open_collection
from sameface.model.upkeep.compreface.report import ServiceReport
from sameface.model.upkeep.compreface.source import Example, Service, Source

Item = TypeVar("Item")

PEOPLE_AT_ONCE = 500  # enrolled by name alone in one transaction
PHOTOS_AT_ONCE = 32  # embedded, then enrolled in one transaction


def import_services(
    engine: Engine, source: Source, *, store_crops: bool = False, progress: Progress = ignore_progress
) -> list[ServiceReport]:
    """Import every service of `source`; returns what became of each."""
    reports = []
    for service in source.list_services():
        report = ServiceReport(service.name)
        reports.append(report)
        try:
            collection = open_collection(engine.gallery, service, store_crops=store_crops)
        except InvalidArgument as error:  # its key is that of the demo: the other services go on
            report.refused = error.detail
            continue
        report.collection = collection.name
        ServiceImport(engine, source, service, collection, report).run(progress)
    return reports


class ServiceImport:
    """Reads one service and enrols it into `collection`, with `report` counting along."""

    def __init__(
        self, engine: Engine, source: Source, service: Service, collection: Collection, report: ServiceReport
    ) -> None:
        self.engine = engine
        self.gallery = engine.gallery
        self.source = source
        self.service = service
        self.collection = collection
        self.report = report
        self.person_ids: dict[str, str] = {}  # by subject

    def run(self, progress: Progress) -> None:
        """Enrol all subjects by name, then the examples of all of them, a block at a time."""
        subjects = sorted(self.source.list_subjects(self.service), key=lambda name: (not is_id(name), name))
        for some in in_blocks(subjects, PEOPLE_AT_ONCE):
            self.add_people(some)
        done, what = 0, f"importing {self.service.name}"
        for examples in in_blocks(self.source.list_examples(self.service), PHOTOS_AT_ONCE):
            self.add_people({example.subject for example in examples} - self.person_ids.keys())
            self.add_faces(examples)
            done += len(examples)
            progress(what, done, max(done, self.service.examples))

    def add_people(self, subjects: Iterable[str]) -> None:
        """Enrol subjects by name alone, unless they are there, each under an id that no other subject has."""
        taken = set(self.person_ids.values())
        chosen: dict[str, str] = {}
        for subject in subjects:
            chosen[subject] = choose_id(subject, taken, self.find_name)
            taken.add(chosen[subject])
        there = self.gallery.store.people.existing(self.collection, list(chosen.values()))
        newcomers = [
            NewPerson(person_id, [], subject[:MAX_NAME], may_exist=True)
            for subject, person_id in chosen.items()
            if person_id not in there
        ]
        if newcomers:
            self.gallery.enroll(self.collection, newcomers)
        self.person_ids |= chosen
        self.report.people = len(self.person_ids)

    def find_name(self, person_id: str) -> str | None:
        """The name of the person of an id; None if there is no such person or no name."""
        try:
            return self.gallery.get_person(self.collection, person_id).name
        except PersonNotFound:
            return None

    def add_faces(self, examples: Sequence[Example]) -> None:
        """Enrol the examples that are no faces of the collection yet, in one transaction."""
        ids = [example.image_id for example in examples]
        there = self.gallery.store.lookups.existing_faces(self.collection, ids)
        self.recall_warnings([example for example in examples if example.image_id in there])
        new = [example for example in examples if example.image_id not in there]
        photos = self.source.read_photos(self.service, [example.image_id for example in new])
        self.enroll({example: photos.get(example.image_id) for example in new})

    def enroll(self, photos: dict[Example, bytes | None]) -> None:
        """Enrol examples with their photos; those without one, or without a face on it, are rejected."""
        requests = [self.to_request(*entry) for entry in photos.items()]
        outcomes = self.engine.run(
            enroll_many(self.engine.pipeline, self.gallery, self.collection.name, requests)
        )
        for example, request, outcome in zip(photos, requests, outcomes, strict=True):
            if isinstance(outcome, Enrollment):
                self.report.enrolled += 1
                self.report.warn(example, outcome.warnings)
            elif outcome is request or "rejected" in outcome.facts:
                self.report.reject(example, outcome)
            else:  # not about the photo: the disk is full, say
                raise outcome

    def to_request(self, example: Example, photo: bytes | None) -> EnrollRequest | SamefaceError:
        """The request to enrol an example, or why there is none."""
        if not photo:
            return UnreadableImage("CompreFace did not keep the photo: enrol another one.")
        return EnrollRequest(
            collection=self.collection.name,
            person_id=self.person_ids[example.subject],
            face_id=example.image_id,
            name=example.subject[:MAX_NAME],
            photos=[photo],
            may_exist=True,
            idempotency_key=key_of(example),
        )

    def recall_warnings(self, examples: Sequence[Example]) -> None:
        """Count examples that an earlier run has enrolled; their warnings are remembered for a day."""
        self.report.already_there += len(examples)
        earlier = self.gallery.find_responses(self.collection, [key_of(example) for example in examples])
        for example in examples:
            if found := earlier.get(key_of(example)):
                self.report.warn(example, Enrollment.from_dict(found.response).warnings)


def key_of(example: Example) -> str:
    """The idempotency key under which the store remembers what an example's enrolment answered."""
    return f"compreface {example.image_id}"


def in_blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last one shorter."""
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block
