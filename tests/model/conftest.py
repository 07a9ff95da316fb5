"""What tests of a bundle on its way to a session share, and those of the operations on a gallery."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import Collection
from tests.networks import build_recogniser
from tests.postgres_server import gallery_in


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "bundle"
    folder.mkdir()
    return build_recogniser(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def gallery(pipeline: Pipeline, tmp_path: Path) -> Iterator[Gallery]:
    gallery = Gallery(gallery_in(tmp_path), pipeline.embedder.bundle, thresholds=pipeline.thresholds)
    yield gallery
    gallery.close()


@pytest.fixture
def staff(gallery: Gallery) -> Collection:
    return gallery.create_collection("staff")[0]
