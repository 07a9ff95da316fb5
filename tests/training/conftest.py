"""Drawn identities that all tests of training share."""

from pathlib import Path

import pytest

from training.synthetic import write_identities

PEOPLE, IMAGES = 12, 4


@pytest.fixture(scope="session")
def drawn_faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`0000/0000_0000.png` and so on, named as LFW names its pictures."""
    folder = tmp_path_factory.mktemp("faces")
    write_identities(folder, PEOPLE, IMAGES)
    return folder
