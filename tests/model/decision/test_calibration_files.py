"""Calibrations, in files or in the store, belong to the bundle they were measured with and to no other."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.bundles.published import MODELS, SHIPPED
from sameface.model.decision.calibration_files import (
    Calibrations,
    load_calibrations,
    name_chosen,
    save_calibration,
)
from sameface.model.errors import CalibrationNotFound, CalibrationRefused
from sameface.model.store.store import Store
from tests.model.calibrated import LOWEST, calibrate_bundle, measure
from tests.networks import build_recogniser


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return build_recogniser(tmp_path)


def test_what_is_saved_is_what_is_loaded(bundle: Bundle) -> None:
    saved = calibrate_bundle(bundle)
    assert load_calibrations(bundle) == {"tiny-recogniser/drawn": saved}
    assert saved.evidence.people == 200
    assert saved.lowest_fmr == pytest.approx(LOWEST)


def test_the_first_one_is_decided_by_until_another_is_chosen(bundle: Bundle) -> None:
    assert Calibrations(bundle).default is None
    calibrate_bundle(bundle, "first")
    calibrate_bundle(load_bundle(bundle.folder), "second")
    assert Calibrations(load_bundle(bundle.folder)).default.name == "tiny-recogniser/first"
    assert Calibrations(load_bundle(bundle.folder), "second").default.name == "tiny-recogniser/second"
    calibrate_bundle(load_bundle(bundle.folder), "third", default=True)
    assert Calibrations(load_bundle(bundle.folder)).default.name == "tiny-recogniser/third"
    assert load_bundle(bundle.folder).identity == bundle.identity


def test_one_is_found_by_either_name_also_if_it_came_later(bundle: Bundle) -> None:
    calibrations = Calibrations(bundle)
    with pytest.raises(CalibrationNotFound, match="there are: none"):
        calibrations.get("drawn")
    calibrate_bundle(bundle)
    assert calibrations.get("drawn") is calibrations.get("tiny-recogniser/drawn")
    assert [found.name for found in calibrations.list()] == ["tiny-recogniser/drawn"]
    with pytest.raises(CalibrationNotFound, match="there are: tiny-recogniser/drawn"):
        calibrations.get("other-recogniser/drawn")


def test_a_calibration_of_another_bundle_is_refused_by_its_hash(bundle: Bundle) -> None:
    calibrate_bundle(bundle)
    path = bundle.folder / "calibrations" / "drawn.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"identity": "0" * 64}))
    with pytest.raises(CalibrationRefused, match="measured with another bundle: identity 000000000000"):
        Calibrations(bundle)


@pytest.mark.parametrize(
    "damage",
    [
        lambda fields: fields.pop("curve"),
        lambda fields: fields["curve"].update(tail_scale=float("nan")),
        lambda fields: fields["curve"].update(fmrs=[1, 2]),
        lambda fields: fields["curve"].update(similarities="all"),
        lambda fields: fields["evidence"].update(colour="blue"),
        lambda fields: fields["fusions"]["max"].pop("faces"),
        lambda fields: fields.update(fusions=None),
    ],
)
def test_a_damaged_file_is_refused(bundle: Bundle, damage) -> None:
    calibrate_bundle(bundle)
    path = bundle.folder / "calibrations" / "drawn.json"
    fields = json.loads(path.read_text())
    damage(fields)
    path.write_text(json.dumps(fields))
    with pytest.raises(CalibrationRefused):
        Calibrations(bundle)


def test_a_file_that_is_no_json_is_refused(bundle: Bundle) -> None:
    calibrate_bundle(bundle)
    (bundle.folder / "calibrations" / "drawn.json").write_text("[")
    with pytest.raises(CalibrationRefused, match="cannot be read as JSON"):
        Calibrations(bundle)


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """The database of a data folder that is still empty."""
    return tmp_path / "data" / "gallery.db"


def test_what_is_kept_in_the_store_is_what_is_read(bundle: Bundle, gallery: Path) -> None:
    assert Calibrations(bundle, gallery=gallery).list() == []
    assert not gallery.exists()
    measured = measure(bundle, "mine")
    assert save_calibration(measured, bundle, gallery)
    opened = Calibrations(bundle, gallery=gallery)
    assert (opened.list(), opened.default, opened.own) == ([measured], measured, {measured.name})
    assert not (bundle.folder / "calibrations").exists()
    assert Calibrations(bundle).list() == []


def test_a_calibration_in_the_store_is_of_no_use_to_another_bundle(gallery: Path, tmp_path: Path) -> None:
    bundles = []
    for seed in (1, 2):
        (tmp_path / str(seed)).mkdir()
        bundles.append(build_recogniser(tmp_path / str(seed), seed=seed))
    save_calibration(measure(bundles[0], "mine"), bundles[0], gallery)
    assert Calibrations(bundles[1], gallery=gallery).list() == []


def test_a_setting_goes_before_the_choice_and_the_choice_before_the_bundle(
    bundle: Bundle, gallery: Path
) -> None:
    calibrate_bundle(bundle, "shipped")
    bundle = load_bundle(bundle.folder)
    assert not save_calibration(measure(bundle, "mine"), bundle, gallery)
    assert Calibrations(bundle, gallery=gallery).default.name == "tiny-recogniser/shipped"
    assert save_calibration(measure(bundle, "other"), bundle, gallery, default=True)
    assert Calibrations(bundle, gallery=gallery).default.name == "tiny-recogniser/other"
    assert Calibrations(bundle, "mine", gallery).default.name == "tiny-recogniser/mine"
    assert name_chosen(bundle, gallery).contract.calibration == "other"
    assert name_chosen(bundle, gallery).identity == bundle.identity


def test_a_default_that_is_gone_is_named_and_does_not_hide_the_others(bundle: Bundle, gallery: Path) -> None:
    save_calibration(measure(bundle, "mine"), bundle, gallery)
    opened = Calibrations(bundle, "gone", gallery)
    assert [found.name for found in opened.list()] == ["tiny-recogniser/mine"]
    with pytest.raises(CalibrationNotFound, match="gone"):
        assert opened.default


def test_a_damaged_one_in_the_store_is_refused(bundle: Bundle, gallery: Path) -> None:
    save_calibration(measure(bundle, "mine"), bundle, gallery)
    with closing(Store(gallery)) as store:
        store.calibrations.save(bundle.identity, "mine", {"name": "mine"}, replacing=True)
    with pytest.raises(CalibrationRefused, match="calibration mine is no calibration"):
        Calibrations(bundle, gallery=gallery)


@pytest.mark.parametrize("name", ["", "../up", "a b", ".hidden", "x" * 200])
def test_a_name_must_be_one(bundle: Bundle, gallery: Path, name: str) -> None:
    with pytest.raises(CalibrationRefused, match="cannot be a calibration's name"):
        save_calibration(measure(bundle, name), bundle, gallery)
    assert not gallery.exists()


@pytest.mark.parametrize("keep", ["file", "store"])
def test_a_name_that_is_taken_stays_unless_it_is_to_be_replaced(
    bundle: Bundle, gallery: Path, keep: str
) -> None:
    if keep == "file":
        calibrate_bundle(bundle)
    else:
        save_calibration(measure(bundle), bundle, gallery)
    with pytest.raises(CalibrationRefused, match="choose another name, or --replace"):
        save_calibration(measure(bundle), bundle, gallery)
    save_calibration(measure(bundle), bundle, gallery, replacing=True)
    assert Calibrations(bundle, gallery=gallery).own == {"tiny-recogniser/drawn"}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_is_shipped_belongs_to_what_is_published(name: str) -> None:
    published = MODELS[name]
    folder = SHIPPED / published.contract.name
    bundle = Bundle(published.contract, folder, published.file.name, published.file.sha256)
    shipped = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert [fields["identity"] for fields in shipped] == [bundle.identity] * len(shipped)
    assert (published.contract.calibration is None) == (not shipped)
