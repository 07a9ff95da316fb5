"""A bundle by name or by folder."""

from pathlib import Path

import pytest

from sameface.model.bundles.bundle import find_folder
from sameface.model.errors import BundleRefused
from tests.networks import build_recogniser


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two bundles; where the user is, `mine` is another bundle and `trained` something else."""
    for path in ("models/mine", "models/trained", "here/mine", "here/trained"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("models/mine", "models/trained", "here/mine"):
        build_recogniser(tmp_path / path)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "models"


def test_a_bundle_is_found_by_folder_or_name(models: Path) -> None:
    assert find_folder("mine", models).resolve() == models.parent / "here" / "mine"
    assert find_folder("trained", models) == models / "trained"
    assert find_folder(models / "elsewhere", models) == models / "elsewhere"
    assert find_folder(".", models) == Path()


def test_a_name_that_nobody_knows_is_refused_with_those_that_are_there(models: Path) -> None:
    with pytest.raises(BundleRefused, match="there are: mine, trained"):
        find_folder("yours", models)
