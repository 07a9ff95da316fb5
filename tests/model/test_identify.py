"""Who is this, as the collection was when it was read."""

import asyncio

from sameface.model.faces import Embedding
from sameface.model.gallery.gallery import Gallery
from sameface.model.identify import IdentifyRequest, identify
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection
from tests.model.people import newcomer, random_units
from tests.networks import DIMENSION


def test_a_collection_that_the_request_has_read_is_searched_as_it_was(
    pipeline: Pipeline, gallery: Gallery, staff: Collection
) -> None:
    ada, bob = random_units(2, DIMENSION)
    gallery.enroll(staff, [newcomer("ada", ada[None])])
    then = gallery.get_collection("staff")
    gallery.enroll(then, [newcomer("bob", bob[None])])
    probe = Embedding(ada, gallery.bundle.identity)
    sizes = []
    for collection in (then, "staff"):
        request = IdentifyRequest(collection=collection, probe=probe)
        found = asyncio.run(identify(pipeline, gallery, request))
        assert found.results[0].candidates[0].person_id == "ada"
        sizes.append((found.collection, found.gallery_size, found.gallery_faces))
    assert sizes == [("staff", 1, 1), ("staff", 2, 2)]
