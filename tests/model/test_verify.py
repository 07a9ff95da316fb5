"""Photos and embeddings are judged alike, and the audit is told of both alike."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from sameface.model.access.audit.decisions import Decisions
from sameface.model.decision.thresholds import EXTRAPOLATING
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import Pipeline
from sameface.model.store.access.audit import Columns
from sameface.model.store.records import Collection, FaceOwner
from sameface.model.verify import CompareRequest, EnrolledPerson, VerifyRequest, compare, verify
from tests.model.people import newcomer
from tests.pictures import photo_of

FIELDS = ("action", "outcome", "collection", "revision", "person_id", "model", "similarity", "details")


class Kept(Decisions):
    """Keeps decisions in memory."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def record(self, entries: Sequence[Columns], *, patient: bool = False) -> None:  # noqa: ARG002
        self.entries += [{name: entry[name] for name in FIELDS} for entry in entries]

    def close(self) -> None:
        pass


@pytest.fixture
def kept(gallery: Gallery) -> list[dict[str, Any]]:
    """The decisions that the gallery was told of."""
    gallery.decisions = Kept()
    return gallery.decisions.entries


def test_a_photo_and_its_embedding_are_the_same_decision(
    pipeline: Pipeline, gallery: Gallery, staff: Collection, kept: list[dict[str, Any]]
) -> None:
    photos = [photo_of(1), photo_of(1, noise=3), photo_of(2)]
    known, *probes = [
        pipeline.embed_one_face(photo, "only", 0.0, name="photo").faces[0].embedding for photo in photos
    ]
    gallery.enroll(staff, [newcomer("ada", known.values[None])])
    staff = gallery.get_collection("staff")
    for photo in photos[1:]:
        request = VerifyRequest(probe=photo, reference=EnrolledPerson("staff", "ada"), rule=EXTRAPOLATING)
        asyncio.run(verify(pipeline, gallery, request))
    owner = FaceOwner("ada", None, "ada-0")
    asked = CompareRequest(known=known, probes=probes, collection=staff, owner=owner)
    compared = compare(pipeline, gallery, asked)
    assert kept[2:] == kept[:2]
    assert [entry["outcome"] for entry in kept] == ["same_person", "different_people"] * 2
    assert [entry["similarity"] for entry in kept[2:]] == compared.similarities
    assert kept[0]["collection"] == "staff"
    assert kept[0]["person_id"] == "ada"


def test_two_photos_are_a_decision_about_nobody(
    pipeline: Pipeline, gallery: Gallery, kept: list[dict[str, Any]]
) -> None:
    request = VerifyRequest(probe=photo_of(1), reference=photo_of(1, noise=3))
    decision = asyncio.run(verify(pipeline, gallery, request))
    assert decision.same_person
    [entry] = kept
    assert (entry["outcome"], entry["similarity"]) == ("same_person", decision.similarity)
    assert (entry["collection"], entry["person_id"], entry["model"]) == (None, None, decision.model)
