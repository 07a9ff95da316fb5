"""Accuracy is the one that a person would count, and a pair that cannot be scored is wrong."""

from pathlib import Path

import numpy as np
import pytest

from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.lfw_pairs import Pair, find_best_threshold, measure_accuracy, read_pairs

NOWHERE = Path("nowhere")


def pairs_of(answers: list[tuple[int, bool]]) -> list[Pair]:
    return [Pair(fold, same, NOWHERE, NOWHERE) for fold, same in answers]


def test_pairs_are_read_with_their_folds_and_whatever_suffix_their_pictures_have(tmp_path: Path):
    for name in ("Ada/Ada_0001.jpg", "Ada/Ada_0002.webp", "Bo/Bo_0010.png"):
        (tmp_path / "crops" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crops" / name).touch()
    file = tmp_path / "pairs.txt"
    file.write_text("2\t1\nAda\t1\t2\nAda\t1\tBo\t10\nAda 2 1\nBo 10 Cy 3\n")
    pairs = read_pairs(file, tmp_path / "crops")
    assert [(pair.fold, pair.same_person) for pair in pairs] == [(0, True), (0, False), (1, True), (1, False)]
    assert [pair.reference.name for pair in pairs] == [
        "Ada_0002.webp",
        "Bo_0010.png",
        "Ada_0001.jpg",
        "Cy_0003",
    ]
    assert not pairs[-1].reference.exists()


def test_a_list_may_name_files_and_their_crops_are_found_under_another_suffix(tmp_path: Path):
    """`sameface prepare` names the crop of IMG_1.png IMG_1.jpg, and keeps a.jpg and a.png apart."""
    for name in ("Ada B/IMG_1.jpg", "Ada B/v2.final.jpg", "José/a.jpg.jpg", "José/a.png.jpg"):
        (tmp_path / "crops" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crops" / name).touch()
    file = tmp_path / "pairs.txt"
    file.write_text("1\t1\nAda B\tIMG_1.png\tv2.final.webp\nAda B\tgone.jpg\tJosé\ta.png\n", "utf-8")
    same, other = read_pairs(file, tmp_path / "crops")
    assert (same.same_person, same.probe.name, same.reference.name) == (True, "IMG_1.jpg", "v2.final.jpg")
    assert (other.same_person, other.probe.name, other.reference.name) == (False, "gone", "a.png.jpg")


@pytest.mark.parametrize(
    "text", ["", "10 300\n", "nonsense\n", "1 1\nAda x y\n", "1 1\nAda 1\n", "1 0\nAda 1 2\n"]
)
def test_a_file_that_lists_no_pairs_is_refused(tmp_path: Path, text: str):
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(PairsRefused):
        read_pairs(tmp_path / "pairs.txt", tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(PairsRefused, match=r"cannot be read.*`sameface pairs FOLDER` makes a list"):
        read_pairs(tmp_path / "pairs.txt", tmp_path)


def test_the_best_threshold_is_the_one_that_trying_all_of_them_finds():
    random = np.random.default_rng(0)
    for _ in range(50):
        same = random.random(40) < 0.5
        scores = np.round(random.normal(same * 0.5, 0.4), 1)  # with ties
        errors = {threshold: np.sum((scores >= threshold) != same) for threshold in scores}
        found = find_best_threshold(scores, same)
        assert errors[found] == min(errors.values())


def test_each_fold_is_decided_by_the_threshold_of_the_others():
    pairs = pairs_of([(0, True), (0, False), (1, True), (1, False)])
    assert measure_accuracy([0.9, 0.1, 0.9, 0.2], pairs).accuracy == 1
    # Fold 1 alone would put the threshold at 0.3; fold 0 puts it at 0.9, where fold 1 misses its match.
    assert measure_accuracy([0.9, 0.8, 0.3, 0.2], pairs).wrong == 2


def test_a_pair_without_a_similarity_is_wrong_and_counted():
    pairs = pairs_of([(fold, same) for fold in (0, 1) for same in (True, True, False)])
    measured = measure_accuracy([float("nan"), 0.9, 0.1, 0.9, 0.8, 0.2], pairs)
    assert (measured.pairs, measured.wrong, measured.missing) == (6, 2, 1)  # 0.8 is below fold 0's 0.9


def test_nothing_scored_is_all_wrong():
    assert measure_accuracy([float("nan")] * 2, pairs_of([(0, True), (0, False)])).accuracy == 0
