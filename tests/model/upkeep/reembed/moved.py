"""Crops to enrol, a collection that keeps them, and what it must be like after a move."""

from typing import Any

import numpy as np

from sameface.model.bundles.bundle import Bundle
from sameface.model.faces import Pixels
from sameface.model.photo.embed import Embedder
from sameface.model.photo.image import ImageLimits, decode_image
from sameface.model.store.records import Binding, Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.check_gallery import check_gallery
from tests.model.people import everybody
from tests.networks import DIMENSION

PEOPLE = 12


def draw_crop(seed: int) -> Pixels:
    pattern = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), np.uint8)
    return np.kron(pattern, np.ones((14, 14, 1), np.uint8))


def create(store: Store, bundle: Bundle, *, store_crops: bool = True) -> Collection:
    contract = bundle.contract
    binding = Binding(
        store_crops=store_crops,
        calibration="lfw",
        bundle=contract.name,
        identity=bundle.identity,
        dimension=DIMENSION,
    )
    return store.collections.create("staff", binding)[0]


def without_embeddings(store: Store) -> list[dict[str, Any]]:
    people = everybody(store, "staff")
    for face in (face for person in people for face in person["faces"]):
        del face["embedding"]
    return people


def expect_embeddings_of(store: Store, embedder: Embedder) -> None:
    """Every face has the embedding that the recogniser gives its crop."""
    staff = store.collections.get("staff")
    assert staff.identity == embedder.identity
    assert check_gallery(store.place) == []
    with store.frozen() as connection:
        rows = connection.exec_driver_sql("SELECT embedding, crop FROM faces").all()
    assert len(rows) == staff.faces
    for embedding, crop in rows:
        [expected] = embedder.embed([np.asarray(decode_image(crop, ImageLimits()))])
        np.testing.assert_allclose(np.frombuffer(embedding, "<f4"), expected.values, atol=1e-6)
