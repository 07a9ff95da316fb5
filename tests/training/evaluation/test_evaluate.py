"""An evaluation measures what a naive count would, and its report says so."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sameface.model.errors import LabelsRefused
from sameface.model.measurement.intervals import measure_mean_rate, measure_rates, measure_share
from sameface.model.measurement.scores import ListedPairs, score_all_pairs
from sameface.model.pipeline import Pipeline
from sameface.training.evaluation.data_sets import open_data
from sameface.training.evaluation.evaluate import (
    CURVE,
    bin_scores,
    draw_curves,
    evaluate,
    find_equal,
    measure_fold_accuracy,
)
from sameface.training.evaluation.report import write_report
from tests.model.calibrated import calibrate_bundle
from tests.model.measurement.test_labelled_photos import write
from tests.model.strangers import draw_people
from tests.networks import build_recogniser
from tests.pictures import photo_of


def listed(similarities: list[float], same: list[bool]) -> ListedPairs:
    each = np.arange(len(same))
    return ListedPairs(np.array(similarities, np.float32), np.array(same), each, each, each * 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = {f"p{person}/{n}.png": photo_of(person, noise=n) for person in range(12) for n in (1, 2, 3)}
    return write(tmp_path_factory.mktemp("people"), photos | {"p0/empty.png": photo_of()})


def test_the_equal_error_rate_is_where_both_are_equal() -> None:
    pairs = listed([0.1, 0.2, 0.3, 0.6, 0.4, 0.7, 0.8, 0.9], [False] * 4 + [True] * 4)
    genuine, impostor = pairs.score()
    threshold = find_equal(genuine, impostor)
    assert 0.4 < threshold <= 0.6
    assert measure_mean_rate(pairs, threshold).value == 0.25


def test_listed_pairs_without_a_similarity_are_no_cases_but_count_as_wrong() -> None:
    pairs = listed([0.1, np.nan, 0.9, np.nan], [False, False, True, True])
    [rates] = measure_rates(pairs, [0.5])
    assert (rates.fmr.value, rates.fnmr.value) == (0, 0)
    assert measure_share(pairs, np.isnan(pairs.similarities)).value == 0.5


def test_a_list_without_folds_has_no_accuracy() -> None:
    """Its threshold would be chosen on the very pairs that it is judged by."""
    pairs = listed([0.1, 0.9, 0.2, 0.8], [False, True, False, True])
    assert measure_fold_accuracy(pairs) is None
    folded = measure_fold_accuracy(replace(pairs, folds=np.array([0, 0, 1, 1])))
    assert folded.rate.value == 0.75  # by 0.9, the best threshold of the first fold, 0.8 is missed


def test_curves_are_those_of_the_counts() -> None:
    pairs = draw_people(60, 2, likeness=0.4)
    genuine, impostor = score_all_pairs(pairs)
    curves = draw_curves(genuine, impostor)
    assert curves.fmrs == CURVE
    assert list(curves.fnmrs) == sorted(curves.fnmrs)
    for kind, shares in ((genuine, curves.genuine), (impostor, curves.impostor)):
        assert sum(shares) == pytest.approx(1)
        assert sum(shares[75:]) == pytest.approx(kind.share_from(0.5))
    assert len(bin_scores(genuine)) == 100


def test_a_labelled_folder_is_compared_with_itself(folder: Path, pipeline: Pipeline) -> None:
    found = evaluate(pipeline, open_data(folder))
    assert (found.photos, found.failed) == (37, 1)
    assert (found.genuine_pairs, found.impostor_pairs) == (36, 36 * 35 // 2 - 36)
    assert (found.accuracy, found.calibrated, found.groups) == (None, None, ())
    assert found.identification.enrolled == 8
    assert [row.supported for row in found.decades] == [True] + [False] * 5
    assert found.eer.value < 0.1


def test_groups_are_compared_where_people_are_known(folder: Path, pipeline: Pipeline, tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("".join(f"p{n},{'ab'[n % 2]}\n" for n in range(12)))
    found = evaluate(pipeline, open_data(folder), groups=groups, target_fmr=0.1)
    assert [(group.group, group.people) for group in found.groups] == [("a", 6), ("b", 6)]
    pairs = write(tmp_path, {"pairs.txt": b"1 1\np0 1 2\np0 1 p1 1\n"})
    for name in ("p0", "p1"):
        shutil.copytree(folder / name, pairs / name)
        for path in list((pairs / name).glob("?.png")):
            path.rename(path.with_name(f"{name}_{int(path.stem):04d}.png"))
    with pytest.raises(LabelsRefused, match="labelled folder"):
        evaluate(pipeline, open_data(pairs), groups=groups)


@pytest.mark.parametrize(
    ("photos", "missing"),
    [({"a/1.png": 1, "b/1.png": 2}, "genuine"), ({"a/1.png": 1, "a/2.png": 1, "b/1.png": None}, "impostor")],
)
def test_data_without_both_kinds_of_pairs(
    tmp_path: Path, pipeline: Pipeline, photos: dict, missing: str
) -> None:
    pictures = {
        name: photo_of() if person is None else photo_of(person, noise=place + 1)
        for place, (name, person) in enumerate(photos.items())
    }
    with pytest.raises(LabelsRefused, match=f"no {missing} pairs"):
        evaluate(pipeline, open_data(write(tmp_path, pictures)))


def test_the_report_needs_nothing_else_and_says_the_same_twice(
    folder: Path, pipeline: Pipeline, tmp_path: Path
) -> None:
    found = evaluate(pipeline, open_data(folder))
    page = write_report([found, found], tmp_path / "out")
    text = page.read_text()
    for outside in ('src="', "<script", 'href="http', "@import", "url(http"):
        assert outside not in text
    assert text.count("<svg") == 3  # both bundles have one name here, and so one figure of scores
    assert f"{found.decades[0].rates.threshold:.4f}" in text
    names = {path.name for path in page.parent.iterdir()}
    assert names >= {"report.json", "det.png", "det.svg", "roc.png", "scores-tiny-recogniser.svg"}
    first, second = json.loads((page.parent / "report.json").read_text())
    assert first == second
    assert first["eer"]["value"] == found.eer.value
    again = write_report([found, found], tmp_path / "again")
    assert again.read_text() == text


def test_the_commands_measure_and_calibrate_one_folder(folder: Path, tmp_path: Path, run) -> None:
    bundle = build_recogniser(tmp_path)
    made = run("calibrate", tmp_path, folder, "--name", "own", "--json")
    assert made.returncode == 0, made.stderr
    answer = json.loads(made.stdout)
    assert answer["evidence"]["impostor_pairs"] == 594
    assert answer["next_decade"]["fmr"] == pytest.approx(0.01)
    assert answer["failed"] == [{"file": "p0/empty.png", "code": "no_face_found"}]
    shown = run("calibrate", tmp_path, folder, "--name", "again")
    assert "For 1e-02 it takes 2,406 impostor pairs more" in shown.stdout
    taken = run("calibrate", tmp_path, folder, "--name", "own", "--json")
    assert (taken.returncode, json.loads(taken.stdout)["code"]) == (2, "calibration_refused")

    evaluated = run("evaluate", tmp_path, folder, "--out", tmp_path / "out", "--against", bundle.folder)
    assert evaluated.returncode == 0, evaluated.stderr
    assert "FNMR at FMR 1e-01" in evaluated.stdout
    assert (tmp_path / "out" / "report.html").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "tiny-recogniser/own" in page


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--target-fmr", "0"), "invalid_request"),
        (("--target-fmr", "nan"), "invalid_request"),
        (("--groups", "gone.csv"), "labels_refused"),
        (("--by-worst-group",), "labels_refused"),
    ],
)
def test_what_cannot_be_calibrated_leaves_nothing(folder: Path, tmp_path: Path, run, flags, code) -> None:
    build_recogniser(tmp_path)
    answer = run("calibrate", tmp_path, folder, *flags, "--json")
    assert (answer.returncode, json.loads(answer.stdout)["code"]) == (2, code)
    assert not (tmp_path / "calibrations").exists()


def test_a_calibrated_bundle_is_held_to_its_promise(tmp_path: Path, folder: Path, run) -> None:
    calibrate_bundle(build_recogniser(tmp_path))
    out = tmp_path / "out"
    answer = run("evaluate", tmp_path, folder, "--out", out, "--target-fmr", "0.01", "--json")
    [found] = json.loads(answer.stdout)
    assert found["calibrated"]["calibration"] == "tiny-recogniser/drawn"
    assert found["calibrated"]["target_fmr"] == 0.01
