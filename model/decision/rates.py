"""How error rates are written: in one notation everywhere, and so that they can be typed again."""

import math


def write_rate(rate: float) -> str:
    """A rate with two digits: 1e-4, 3.2e-4, 5e-1; 0 and 1 as they are."""
    if rate in (0, 1):
        return f"{rate:.0f}"
    digits, exponent = f"{rate:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def round_up(rate: float) -> float:
    """The rate with two digits that is not lower, so that what is written is supported if `rate` is."""
    exponent = math.floor(math.log10(rate)) - 1
    return float(f"{math.ceil(rate / 10.0**exponent - 1e-9)}e{exponent}")
