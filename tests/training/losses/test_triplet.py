"""The mining of negatives, against brute force."""

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.losses.by_name import build_pair_loss
from sameface.training.losses.triplet import mine_negatives
from tests.training.losses.pairs import plain_distances, plain_negative


@pytest.mark.parametrize("margin", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_mining_picks_what_brute_force_picks(seed: int, margin: float) -> None:
    torch.manual_seed(seed)
    labels = torch.randint(6, (24,))
    squared = torch.from_numpy(plain_distances(torch.randn(24, 3)))
    found = mine_negatives(squared, labels[:, None] == labels[None, :], margin)
    expected = [
        (anchor, positive, plain_negative(squared.numpy(), labels.tolist(), anchor, positive, margin))
        for anchor in range(24)
        for positive in range(24)
        if anchor != positive and labels[anchor] == labels[positive]
    ]
    assert list(zip(*(indices.tolist() for indices in found), strict=True)) == expected


@pytest.mark.parametrize(
    ("negatives", "mined"),
    [
        ([0.3, 0.55, 0.65, 2.0], 1),  # the hardest semi-hard one, not the hard one
        ([0.3, 0.4, 0.9, 2.0], 0),  # none is semi-hard: the hardest
        ([0.9, 0.8, 1.5, 2.0], 1),  # all beyond the margin: the hardest, which costs nothing
    ],
)
def test_semi_hard_negatives_come_first(negatives: list[float], mined: int) -> None:
    squared = torch.full((6, 6), 3.0)
    squared[0] = torch.tensor([0.0, 0.5, *negatives])
    people = torch.tensor([0, 0, 1, 2, 3, 4])
    anchor, positive, negative = mine_negatives(squared, people[:, None] == people, margin=0.2)
    assert (int(anchor[0]), int(positive[0]), int(negative[0])) == (0, 1, 2 + mined)


def test_one_person_alone_has_no_triplet() -> None:
    assert float(build_pair_loss("triplet")(torch.randn(4, 8), torch.zeros(4))) == 0
