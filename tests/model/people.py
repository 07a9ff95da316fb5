"""People to enrol, made of random embeddings."""

from typing import Any

import numpy as np

from sameface.model.faces import Embedding, Floats
from sameface.model.store.people.people import read_whole_people
from sameface.model.store.records import NewFace, NewPerson
from sameface.model.store.store import Store
from sameface.model.upkeep.archive_file import describe_person


def random_units(count: int, dimension: int, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def newcomer(person_id: str, embeddings: Floats, **others: object) -> NewPerson:
    faces = [NewFace(f"{person_id}-{number}", values) for number, values in enumerate(embeddings)]
    return NewPerson(person_id, faces, **others)


def probe(values: Floats, identity: str) -> Embedding:
    return Embedding(values, identity)


def everybody(store: Store, name: str) -> list[dict[str, Any]]:
    """All that is stored of a collection's people."""
    with store.frozen() as connection:
        people = read_whole_people(connection, store.collections.get(name), 100_000)
    return [describe_person(person) for person in people]


def people_like(count: int, faces: int, dimension: int, seed: int = 0) -> Floats:
    """Embeddings (people, faces, dimension) that resemble their own person most."""
    centres = random_units(count, dimension, seed)[:, None]
    noise = random_units(count * faces, dimension, seed + 1).reshape(count, faces, dimension)
    values = centres + 0.4 * noise
    return values / np.linalg.norm(values, axis=2, keepdims=True)
