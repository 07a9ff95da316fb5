"""What the examples of the docs find where they are run."""

import shutil
from pathlib import Path

import pytest

from sameface.model.data_folder import DataFolder


@pytest.fixture
def home(real_data: DataFolder, tmp_path: Path) -> Path:
    """A home with the published models and portraits, and the photos of the examples."""
    (tmp_path / ".sameface").mkdir()
    real_data.cache.mkdir(exist_ok=True)
    for folder in (real_data.models, real_data.demo, real_data.cache):
        (tmp_path / ".sameface" / folder.name).symlink_to(folder)
    photos = {"one": "obama", "another": "obama2", "ada": "biden", "group": "biden"}
    for name, portrait in photos.items():
        shutil.copy(real_data.demo / f"{portrait}.jpg", tmp_path / f"{name}.jpg")
    return tmp_path
