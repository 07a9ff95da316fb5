"""Machines that share a gallery must decide by the same files, or do not start."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.data_folder import GalleryPlace
from sameface.model.decision.calibration_files import save_calibration, share_files
from sameface.model.errors import CalibrationRefused
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.store import Store
from tests.model.calibrated import calibrate_bundle, measure
from tests.networks import build_recogniser
from tests.postgres_server import ON_POSTGRES, gallery_in

several = pytest.mark.skipif(not ON_POSTGRES, reason="`make postgres` has a server")


@pytest.fixture
def machines(tmp_path: Path) -> list[Bundle]:
    """A bundle as two machines have it."""
    folders = tmp_path / "here", tmp_path / "there"
    folders[0].mkdir()
    calibrate_bundle(build_recogniser(folders[0]))
    shutil.copytree(*folders)
    return [load_bundle(folder) for folder in folders]


@pytest.fixture
def place(tmp_path: Path) -> GalleryPlace:
    return gallery_in(tmp_path)


def load(place: GalleryPlace, bundle: Bundle) -> None:
    with closing(Gallery(place, bundle)) as gallery:
        gallery.load()


def change(bundle: Bundle, name: str, **values: object) -> None:
    path = bundle.folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values, indent=1))


@several
@pytest.mark.parametrize(
    ("name", "values"),
    [("bundle.json", {"calibration": None}), ("calibrations/drawn.json", {"created_at": "2020-01-01"})],
)
def test_another_file_is_refused_by_its_name_until_it_is_shared(
    machines: list[Bundle], place: GalleryPlace, name: str, values: dict[str, object]
) -> None:
    here, there = machines
    load(place, here)
    load(place, there)
    change(there, name, **values)
    with pytest.raises(CalibrationRefused, match=f"other contents of {name} of tiny-recogniser") as refusal:
        load(place, there)
    assert str(there.folder) in str(refusal.value)
    with closing(Store(place)) as store:
        assert share_files(there, store, replacing=True) == ["bundle.json", "calibrations/drawn.json"]
    load(place, there)
    with pytest.raises(CalibrationRefused, match=name):
        load(place, here)


@several
def test_how_a_file_is_written_and_what_decides_nothing_may_differ(
    machines: list[Bundle], place: GalleryPlace
) -> None:
    here, there = machines
    load(place, here)
    change(there, "bundle.json", licence="our own")
    change(there, "calibrations/drawn.json")
    load(place, there)


@several
def test_a_file_that_the_store_overrules_may_differ(machines: list[Bundle], place: GalleryPlace) -> None:
    here, there = machines
    load(place, here)
    save_calibration(measure(here), here, place, replacing=True)
    change(there, "calibrations/drawn.json", created_at="2020-01-01")
    load(place, there)


@pytest.mark.sqlite
def test_the_files_of_a_lone_machine_may_change(machines: list[Bundle], place: GalleryPlace) -> None:
    here, there = machines
    load(place, here)
    change(there, "calibrations/drawn.json", created_at="2020-01-01")
    load(place, there)
    with closing(Store(place)) as store:
        assert share_files(there, store, replacing=True) == []
