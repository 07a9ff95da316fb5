"""What tests of a bundle on its way to a session share."""

from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle
from tests.networks import build_recogniser


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "bundle"
    folder.mkdir()
    return build_recogniser(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
