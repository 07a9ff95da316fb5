"""People are enrolled, and a retry enrols nobody twice."""

import asyncio

from sameface.model.enroll import Enrollment, EnrollRequest, enroll_many
from sameface.model.errors import IdempotencyKeyReused
from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection
from tests.model.people import random_units
from tests.networks import DIMENSION


def ask(gallery: Gallery, number: int, key: str) -> EnrollRequest:
    """To enrol somebody, by an embedding that is theirs alone."""
    [values] = random_units(1, DIMENSION, number)
    sent = Embedding(values, gallery.bundle.identity)
    return EnrollRequest(
        collection="staff", person_id=f"p{number}", embeddings=[sent], may_exist=True, idempotency_key=key
    )


def test_a_key_twice_in_a_block_is_one_enrolment(
    pipeline: Pipeline, gallery: Gallery, staff: Collection
) -> None:
    requests = [ask(gallery, *each) for each in ((1, "one"), (1, "one"), (3, "one"), (2, "two"))]
    first, again, other, two = asyncio.run(enroll_many(pipeline, gallery, staff, requests))
    assert isinstance(first, Enrollment)
    assert again == first
    assert isinstance(other, IdempotencyKeyReused)
    assert isinstance(two, Enrollment)
    assert gallery.get_collection("staff").faces == 2
