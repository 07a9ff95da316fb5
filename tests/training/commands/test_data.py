"""`sameface synthesize` and `sameface pairs` as somebody at a terminal meets them."""

import json
from pathlib import Path

from sameface.model.measurement.lfw_pairs import read_pairs
from tests.model.measurement.test_labelled_photos import write


def test_synthesize_says_in_json_what_it_wrote(tmp_path: Path, run) -> None:
    out = tmp_path / "drawn"
    answer = run("synthesize", out, "--people", "5", "--images", "2", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {
        "folder": str(out),
        "people": 5,
        "images": 10,
        "pairs": str(out / "pairs.txt"),
    }


def test_pairs_of_ones_own_folders_can_be_evaluated_trained_and_exported_with(tmp_path: Path, run) -> None:
    folder, out = tmp_path / "photos", tmp_path / "own.txt"
    write(folder, {f"Tony {n}/IMG {k}.jpg": f"{n} {k}".encode() for n in range(6) for k in range(3)})
    answer = run("pairs", folder, "--out", out, "--folds", "3", "--pairs", "12", "--json")
    assert answer.returncode == 0, answer.stderr
    made = json.loads(answer.stdout)
    assert (made["pairs"], made["genuine"], made["impostor"], made["folds"]) == (12, 6, 6, 3)
    assert made["people"] == 6
    pairs = read_pairs(out, folder)
    assert sum(pair.same_person for pair in pairs) == 6
    assert all(path.is_file() for pair in pairs for path in (pair.probe, pair.reference))
    again = run("pairs", folder, "--out", out, "--folds", "3", "--pairs", "12")
    assert (again.returncode, "--replace" in again.stderr) == (2, True)
    told = run("pairs", folder, "--out", out, "--folds", "3", "--pairs", "12", "--replace").stdout
    assert f"--set evaluation.pairs={out} --set evaluation.images={folder}" in told
    assert f"--pairs {out} --images {folder}" in told


def test_a_copy_of_a_photo_is_no_genuine_pair_with_it(tmp_path: Path, run) -> None:
    folder = write(
        tmp_path / "photos", {"a/1.jpg": b"x", "a/copy.jpg": b"x", "b/1.jpg": b"y", "c/1.jpg": b"z"}
    )
    answer = run("pairs", folder, "--out", tmp_path / "pairs.txt", "--folds", "1", "--json")
    assert json.loads(answer.stdout)["detail"].startswith("Nobody has two different photos")
    write(folder, {"d/1.jpg": b"x"})
    answer = run("pairs", folder, "--out", tmp_path / "pairs.txt", "--folds", "1", "--json")
    assert json.loads(answer.stdout)["code"] == "labels_refused"


def test_an_export_that_lacks_pairs_says_what_makes_them(tmp_path: Path, run) -> None:
    answer = run("bundle", "export", tmp_path / "last.pt", "--variant", "int8")
    assert (answer.returncode, "`sameface pairs FOLDER` makes such a file" in answer.stderr) == (2, True)
