"""`make bench` tells a loss from noise, and finds what to compare with."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import bench
from benchmarks.shared.server import Server
from benchmarks.versions import Version, compare

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("ratios", "lost"),
    [
        ([0.85, 0.86, 0.84, 0.88], True),
        ([0.92, 0.93, 0.91, 0.95], False),  # within what is allowed
        ([0.60, 0.80, 1.40, 1.30], False),  # this way and that: noise
        ([0.30, 1.00, 1.01, 0.99], False),  # one bad round
        ([0.70, 0.72, 0.71, 1.02, 0.73], True),  # one lucky round
    ],
)
def test_a_loss_is_what_most_rounds_show(ratios: list[float], lost: bool) -> None:
    assert bench.is_lost(ratios) is lost


def test_more_a_second_and_fewer_milliseconds_are_both_faster() -> None:
    server = Server(1, "localhost", 1)
    other = Version("other", server, {"verify, /s": [10.0], "verify, p50 ms": [10.0]})
    this = Version("this", server, {"verify, /s": [20.0], "verify, p50 ms": [5.0]})
    assert [compare(name, other, this) for name in this.figures] == [[2.0], [2.0]]
    assert bench.find_losses(this, other) == []  # one round says nothing
    for version in (other, this):
        version.figures = {name: values * 4 for name, values in version.figures.items()}
    assert bench.find_losses(other, this) == []
    assert bench.find_losses(this, other) == ["verify, /s", "verify, p50 ms"]


def test_a_table_replaces_the_last_one_of_its_kind_alone() -> None:
    page = bench.replace_section("# Title\n\nText.\n", "b, 2 cores", "| old |")
    page = bench.replace_section(page, "a, 4 cores", "| other |")
    page = bench.replace_section(page, "b, 2 cores", "| new |")
    assert page == "# Title\n\nText.\n\n## a, 4 cores\n\n| other |\n\n## b, 2 cores\n\n| new |\n"


@pytest.mark.skipif(not (HERE / ".git").exists(), reason="not a clone")
def test_the_baseline_is_a_commit_that_can_be_served(tmp_path: Path) -> None:
    commit = bench.find_baseline()
    known = subprocess.run(["git", "cat-file", "-t", commit], cwd=HERE, capture_output=True, text=True)
    if known.stdout.strip() != "commit":
        pytest.skip("a shallow clone")
    bench.check_out(commit, tmp_path)
    assert (tmp_path / "sameface" / "api" / "app.py").exists()
