"""Drawn pairs: balanced, of many people, the same for the same seed, and read back as they were drawn."""

import math
from pathlib import Path

import pytest

from sameface.model.measurement.draw_pairs import draw_pairs, unrank
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.lfw_pairs import read_pairs


def album(*counts: int) -> dict[str, list[str]]:
    return {f"Person {n}": [f"IMG {k}.jpg" for k in range(count)] for n, count in enumerate(counts)}


def test_pairs_are_balanced_different_and_of_one_fold_each() -> None:
    drawn = draw_pairs(album(*[4] * 30), pairs=200, folds=5, seed=0)
    assert drawn.pairs == 200
    owners = [{person for pair in fold.pairs for person, _ in pair} for fold in drawn.folds]
    assert sum(map(len, owners)) == len(set.union(*owners)) == 30
    for fold in drawn.folds:
        assert len(fold.genuine) == len(fold.impostor) == 20
        assert len({frozenset(pair) for pair in fold.pairs}) == 40
        assert all(one[0] == other[0] and one != other for one, other in fold.genuine)
        assert all(one[0] != other[0] for one, other in fold.impostor)


def test_a_person_with_many_photos_is_not_most_of_the_list() -> None:
    drawn = draw_pairs(album(500, *[2] * 19), pairs=400, folds=2, seed=0)
    genuine = [one[0] for fold in drawn.folds for one, _ in fold.genuine]
    assert max(genuine.count(person) for person in genuine) <= 2 * math.ceil(100 / 10)
    assert drawn.pairs < 400  # rather fewer pairs than pairs of one person


def test_the_seed_alone_decides() -> None:
    first, again, other = (draw_pairs(album(*[3] * 12), 24, 3, seed).write() for seed in (1, 1, 2))
    assert first == again != other


def test_a_list_is_read_back_as_it_was_drawn(tmp_path: Path) -> None:
    people = album(3, 3, 1, 2) | {"Ada": ["Ada_0001.jpg", "Ada_0012.png"], "J. R.": ["1.JPG", "2.jpg"]}
    for person, files in people.items():
        (tmp_path / person).mkdir()
        for file in files:
            (tmp_path / person / file).touch()
    drawn = draw_pairs(people, 40, 2, seed=3)
    (tmp_path / "pairs.txt").write_text(drawn.write(), "utf-8")
    read = read_pairs(tmp_path / "pairs.txt", tmp_path)
    expected = [
        (number, pair in fold.genuine, *(tmp_path / person / file for person, file in pair))
        for number, fold in enumerate(drawn.folds)
        for pair in fold.pairs
    ]
    assert [(pair.fold, pair.same_person, pair.probe, pair.reference) for pair in read] == expected
    assert all(path.exists() for *_, probe, reference in expected for path in (probe, reference))
    assert any(line.endswith("\tAda\t12") or "Ada\t1\t" in line for line in drawn.write().splitlines())


def test_every_rank_is_another_pair() -> None:
    ranked = [unrank(rank) for rank in range(math.comb(40, 2))]
    assert len(set(ranked)) == len(ranked)
    assert all(0 <= first < second < 40 for first, second in ranked)


@pytest.mark.parametrize(
    ("people", "pairs", "folds", "said"),
    [
        (album(1, 1, 1, 1), 20, 2, "Nobody has two different photos"),
        (album(2, 2, 2, 1), 20, 3, "there are 3 of 4: ask for --folds 2"),
        (album(3, 3, 3, 3), 3, 2, "ask for more --pairs"),
        ({"a\tb": ["1.jpg", "2.jpg"], "c": ["1.jpg"]}, 20, 1, "rename it"),
        ({"a": ["1.jpg", "2\n.jpg"], "c": ["1.jpg"]}, 20, 1, "rename it"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(
    people: dict[str, list[str]], pairs: int, folds: int, said: str
) -> None:
    with pytest.raises(PairsRefused, match=said):
        draw_pairs(people, pairs, folds, seed=0)


def test_two_people_give_the_pairs_they_have() -> None:
    drawn = draw_pairs(album(2, 1), 6000, 1, seed=0)
    assert (drawn.pairs, drawn.count_people()["Person 0"]) == (2, 2)
