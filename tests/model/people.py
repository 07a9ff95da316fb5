"""People to enrol, made of random embeddings."""

import numpy as np

from model.faces import Embedding, Floats
from model.records import NewFace, NewPerson


def random_units(count: int, dimension: int, seed: int = 0) -> Floats:
    values = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def newcomer(person_id: str, embeddings: Floats, **others: object) -> NewPerson:
    faces = [NewFace(f"{person_id}-{number}", values) for number, values in enumerate(embeddings)]
    return NewPerson(person_id, faces, **others)


def probe(values: Floats, identity: str) -> Embedding:
    return Embedding(values, identity)
