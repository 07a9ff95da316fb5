"""A sketch notices photos that two sets share, however large the sets are, and keeps little of either."""

import hashlib
import json
import string
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import load_bundle
from sameface.model.bundles.published import SHIPPED
from sameface.model.decision.calibration_files import Calibrations, save_calibration
from sameface.model.measurement.fit_calibration import calibrate
from sameface.model.measurement.photo_sketch import DIGITS, KEPT, draw_sketch, estimate_overlap
from tests.model.calibrated import calibrate_bundle, draw_faces
from tests.networks import build_recogniser


def digests(first: int, last: int) -> list[str]:
    return [hashlib.sha256(str(number).encode()).hexdigest() for number in range(first, last)]


@pytest.mark.parametrize(
    ("made_on", "tried_on", "share"),
    [
        ((0, 20), (0, 20), 1),
        ((0, 20), (10, 30), 0.5),
        ((0, 20), (20, 40), 0),
        ((0, 5000), (0, 5000), 1),
        ((0, 5000), (2500, 7500), 0.5),
        ((0, 5000), (5000, 10000), 0),
        ((0, 200), (0, 5000), 0.04),
    ],
)
def test_the_share_of_common_photos_is_estimated(
    made_on: tuple[int, int], tried_on: tuple[int, int], share: float
) -> None:
    sketch = draw_sketch(digests(*made_on))
    photos = made_on[1] - made_on[0]
    assert estimate_overlap(sketch, photos, digests(*tried_on)) == pytest.approx(share, abs=0.05)


def test_a_small_set_within_a_large_one_is_noticed() -> None:
    sketch = draw_sketch(digests(0, 20_000))
    assert estimate_overlap(sketch, 20_000, digests(3000, 3600)) > 0.5


def test_a_sketch_is_small_and_holds_no_whole_digest() -> None:
    sketch = draw_sketch(digests(0, 5000))
    assert len(sketch) == KEPT * DIGITS
    assert not any(digest in sketch for digest in digests(0, 5000))


def test_the_order_of_photos_and_their_copies_do_not_matter() -> None:
    some = digests(0, 1000)
    assert draw_sketch(reversed(some)) == draw_sketch(some + some)


def test_without_a_sketch_nothing_is_known() -> None:
    assert estimate_overlap("", 100, digests(0, 100)) is None


def test_a_calibration_keeps_the_sketch_of_its_photos_and_shows_it_nowhere(tmp_path: Path) -> None:
    bundle, faces = build_recogniser(tmp_path), draw_faces()
    faces.digests.update(zip(faces.files, digests(0, 400), strict=True))
    gallery = tmp_path / "gallery.db"
    save_calibration(calibrate(bundle, "drawn", faces, data="drawn", target_fmr=1e-3), bundle, gallery)
    found = Calibrations(load_bundle(tmp_path), gallery=gallery).get("drawn")
    assert estimate_overlap(found.sketch, 400, digests(0, 400)) == 1
    assert found.sketch not in str(found.describe())


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*/*.json")), ids=lambda file: file.stem)
def test_a_shipped_calibration_has_a_sketch_and_nothing_of_its_photos_but_that(file: Path) -> None:
    sketch = json.loads(file.read_text())["sketch"]
    marks = [sketch[start : start + DIGITS] for start in range(0, len(sketch), DIGITS)]
    assert len(sketch) == KEPT * DIGITS
    assert marks == sorted(set(marks))
    assert all(set(mark) <= set(string.hexdigits.lower()) for mark in marks)


def test_a_calibration_file_without_a_sketch_still_opens(tmp_path: Path) -> None:
    bundle = build_recogniser(tmp_path)
    calibrate_bundle(bundle)
    file = tmp_path / "calibrations" / "drawn.json"
    fields = json.loads(file.read_text())
    del fields["sketch"]
    file.write_text(json.dumps(fields))
    assert Calibrations(load_bundle(tmp_path)).get("drawn").sketch == ""
