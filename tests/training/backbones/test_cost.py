"""The counting of parameters and multiply-accumulates: by hand, against the papers, and on the page."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from sameface.training.backbones.by_name import BACKBONES
from sameface.training.backbones.cost import Cost, measure_cost, write_table

PAGE = Path(__file__).parents[3] / "docs" / "backbones.md"


@pytest.fixture(scope="module")
def table() -> str:
    return write_table()


def test_a_small_network_costs_what_it_does_by_hand() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1),  # 4x4 places, 4 x 3 x 9 weights
        nn.PReLU(4),
        nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False),  # 4x4 places, 4 x 9 weights
        nn.BatchNorm2d(4),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    weights = 4 * 27 + 4 * 9 + 640
    others = 4 + 4 + 8 + 10
    assert measure_cost(network, (3, 8, 8)) == Cost(weights + others, 16 * 4 * 27 + 16 * 4 * 9 + 640)


def test_counting_leaves_the_network_alone() -> None:
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(8, 2), nn.BatchNorm1d(2))
    measure_cost(network, (3, 2, 2))
    assert network.training
    assert network(torch.ones(2, 3, 2, 2)).device.type == "cpu"
    assert all(not layer._forward_hooks for layer in network)


@pytest.mark.parametrize(
    ("name", "parameters", "multiply_accumulates"),
    [
        ("iresnet50", 43.6, 6_310),
        ("iresnet100", 65.2, 12_100),
        ("mobilefacenet", 0.99, 221),
    ],
)
def test_backbones_cost_what_was_published(
    table: str, name: str, parameters: float, multiply_accumulates: float
) -> None:
    [row] = re.findall(rf"^\| `{name}` \| \d+ \| ([\d.]+) \| ([\d,]+) \|$", table, re.MULTILINE)
    assert float(row[0]) == pytest.approx(parameters, rel=0.015)
    assert float(row[1].replace(",", "")) == pytest.approx(multiply_accumulates, rel=0.01)


def test_the_page_shows_the_table_of_the_script(table: str) -> None:
    page = PAGE.read_text("utf-8")
    assert table in page, "run `python -m training.cost` and put its table into docs/backbones.md"
    assert all(f"`{name}`" in table for name in BACKBONES)
