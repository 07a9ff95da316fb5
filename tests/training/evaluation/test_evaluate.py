"""An evaluation measures what a naive count would, and its report says so."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.intervals import measure_mean_rate, measure_rates, measure_share
from sameface.model.measurement.scores import ListedPairs, score_all_pairs
from sameface.model.pipeline import Pipeline
from sameface.training.evaluation.data_sets import open_data
from sameface.training.evaluation.difference import compare_bundles
from sameface.training.evaluation.evaluate import (
    CURVE,
    bin_scores,
    draw_curves,
    embed_data,
    evaluate,
    find_equal,
    measure,
    measure_fold_accuracy,
)
from sameface.training.evaluation.report import Report, write_report
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
    assert curves.fmrs == tuple(fmr for fmr in CURVE if fmr * impostor.pairs >= 1)  # it ends with the pairs
    assert len(curves.fnmrs) == len(curves.fmrs) < len(CURVE)
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
    assert [row.rates is None for row in found.decades] == [False] * 2 + [True] * 4  # of 594 impostor pairs
    assert (found.people, found.lowest_fmr, found.target_fmr) == (12, 30 / 594, 30 / 594)
    bundle, detector = pipeline.embedder.bundle, pipeline.detector.bundle
    assert (found.origin.sha256, found.origin.identity) == (bundle.sha256, bundle.identity)
    assert (found.origin.detector, found.origin.detector_identity) == (
        detector.contract.name,
        detector.identity,
    )
    assert found.eer.value < 0.1


def test_groups_are_compared_where_people_are_known(folder: Path, pipeline: Pipeline, tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("".join(f"p{n},{'ab'[n % 2]}\n" for n in range(12)))
    found = evaluate(pipeline, open_data(folder), groups=groups, target_fmr=0.1)
    assert [(group.group, group.people) for group in found.groups] == [("a", 6), ("b", 6)]
    assert (found.target_fmr, found.thin_groups) == (0.1, ("a", "b"))  # 13.5 false matches of each
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
    data = open_data(folder)
    faces = embed_data(pipeline, data)
    found = measure(pipeline, data, faces)
    names = (found.bundle, found.bundle)
    report = Report(
        "2026-01-02", "0.2", "sameface evaluate <x>", (found, found), compare_bundles(names, (faces, faces))
    )
    page = write_report(report, tmp_path / "out")
    text = page.read_text()
    for outside in ('src="', "<script", 'href="http', "@import", "url(http"):
        assert outside not in text
    assert text.count("<svg") == 3  # both bundles have one name here, and so one figure of scores
    assert f"{found.decades[0].rates.threshold:.4f}" in text
    names = {path.name for path in page.parent.iterdir()}
    assert names >= {"report.json", "det.png", "det.svg", "roc.png", "scores-tiny-recogniser.svg"}
    kept = json.loads((page.parent / "report.json").read_text())
    first, second = kept["evaluations"]
    assert first == second
    assert first["eer"]["value"] == found.eer.value
    assert first["decades"][5] == {"target_fmr": 1e-6, "rates": None, "supported": False}
    assert kept["difference"]["verdict"] == "cannot_say"
    again = write_report(report, tmp_path / "again")
    assert again.read_text() == text


def test_the_report_says_what_was_measured_on_what_when_and_how(
    folder: Path, pipeline: Pipeline, tmp_path: Path
) -> None:
    found = evaluate(pipeline, open_data(folder))
    text = write_report(Report("2026-01-02", "0.2", "sameface evaluate <x>", (found,)), tmp_path).read_text()
    origin = found.origin
    for fact in (
        "2026-01-02",
        "<td>0.2</td>",
        "sameface evaluate &lt;x&gt;",
        *(origin.sha256, origin.identity, origin.detector, origin.detector_identity, origin.data_sha256),
        "has no calibration that could hold or not",
    ):
        assert fact in text


def test_a_rate_of_which_the_pairs_say_nothing_has_no_number_in_the_report(
    folder: Path, pipeline: Pipeline, tmp_path: Path
) -> None:
    found = evaluate(pipeline, open_data(folder))
    text = write_report(Report("", "", "", (found,)), tmp_path).read_text()
    rows = re.findall(r"<tr( class=\"thin\")?><td>1e-(\d)( \*)?</td>(.*?)</tr>", text, re.DOTALL)
    shown = [(bool(thin), bool(star), "%" in cells) for thin, _, star, cells in rows]
    assert shown == [(False, False, True), (True, True, True), *[(True, False, False)] * 4]


def test_the_hash_of_the_data_is_that_of_what_sha256sum_prints(folder: Path, pipeline: Pipeline) -> None:
    summed = subprocess.run(
        "sha256sum */* | LC_ALL=C sort -k 2 | sha256sum",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert evaluate(pipeline, open_data(folder)).origin.data_sha256 == summed.stdout.split()[0]


@pytest.fixture
def run(run, tmp_path: Path):
    """Runs `sameface` on a data folder of its own, because calibrations are kept there."""
    return lambda *words: run(*words, SAMEFACE_DATA=str(tmp_path / "data"))


def test_the_commands_measure_and_calibrate_one_folder(folder: Path, tmp_path: Path, run) -> None:
    bundle = build_recogniser(tmp_path)
    made = run("calibrate", tmp_path, folder, "--name", "own", "--json")
    assert made.returncode == 0, made.stderr
    answer = json.loads(made.stdout)
    assert answer["evidence"]["impostor_pairs"] == 594
    assert answer["next_decade"]["fmr"] == pytest.approx(0.01)
    assert answer["failed"] == [{"file": "p0/empty.png", "code": "no_face_found"}]
    shown = run("calibrate", tmp_path, folder, "--name", "again")
    assert "For 1e-2 it takes 2,406 impostor pairs more" in shown.stdout
    taken = run("calibrate", tmp_path, folder, "--name", "own", "--json")
    assert (taken.returncode, json.loads(taken.stdout)["code"]) == (2, "calibration_refused")

    evaluated = run("evaluate", tmp_path, folder, "--out", tmp_path / "out", "--against", bundle.folder)
    assert evaluated.returncode == 0, evaluated.stderr
    assert "FNMR at FMR 1e-1" in evaluated.stdout
    assert (
        "These photos cannot say whether tiny-recogniser/own holds: it was made on them." in evaluated.stdout
    )
    assert "Warning: tiny-recogniser/own was made on all of these very photos" in evaluated.stdout
    assert "cannot say whether tiny-recogniser or tiny-recogniser errs less" in evaluated.stdout
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
    report = json.loads(answer.stdout)
    [found] = report["evaluations"]
    assert found["calibrated"]["calibration"] == "tiny-recogniser/drawn"
    assert found["calibrated"]["target_fmr"] == 0.01
    assert found["calibrated"]["verdict"] in ("holds", "does_not_hold", "cannot_say")
    assert found["calibrated"]["sentence"] in (out / "report.html").read_text().replace("&#39;", "'")
    assert report["version"] == version("sameface")
    assert report["command"].startswith("sameface evaluate ")
    assert datetime.fromisoformat(report["made_at"]) <= datetime.now(UTC)
    assert report["difference"] is None
