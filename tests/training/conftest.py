"""Drawn identities that all tests of training share."""

from pathlib import Path

import pytest

from sameface.training.data.synthetic.people import write_identities, write_pairs

PEOPLE, IMAGES = 12, 4


@pytest.fixture(scope="session")
def drawn_faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`0000/0000_0000.png` and so on, named as LFW names its pictures."""
    folder = tmp_path_factory.mktemp("faces")
    write_identities(folder, PEOPLE, IMAGES)
    return folder


@pytest.fixture(scope="session")
def drawn_pairs(drawn_faces: Path) -> Path:
    """A list of pairs of them, in two folds."""
    file = drawn_faces / "pairs.txt"
    write_pairs(file, PEOPLE, IMAGES, folds=2)
    return file
