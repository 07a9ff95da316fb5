"""Rates in one notation."""

import pytest

from sameface.model.decision.rates import round_up, write_rate


@pytest.mark.parametrize(
    ("rate", "written"),
    [
        (1e-4, "1e-4"),
        (3.23e-4, "3.2e-4"),
        (0.01, "1e-2"),
        (0.5, "5e-1"),
        (9.96e-4, "1e-3"),
        (0, "0"),
        (1, "1"),
    ],
)
def test_a_rate_is_written_with_two_digits(rate: float, written: str) -> None:
    assert write_rate(rate) == written
    assert float(written) == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("rate", [3.11e-4, 1e-4, 9.99e-3, 30 / 79_600, 0.5, 1 / 3, 1e-12])
def test_a_rate_that_is_rounded_up_is_never_lower_and_is_what_is_written(rate: float) -> None:
    rounded = round_up(rate)
    assert rate * (1 - 1e-9) <= rounded <= rate * 1.1
    assert float(write_rate(rounded)) == rounded
