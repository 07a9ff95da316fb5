"""Judges a search by the people in the probes, and by its recall against an exact search."""

import numpy as np


def judge(found: list[list[int]], exact: list[list[int]], shown: list[int | None]) -> dict[str, str]:
    """How often the right person comes first, and recall@1 and @10 against exact search, as text."""
    right = share_right(found, shown)
    figures = {
        "right person first": f"{right:.2%}",
        "... of what exact search finds": f"{right / share_right(exact, shown):.2%}",
    }
    for name, mated in (("mated", True), ("unmated", False)):
        pairs = [
            (one, other)
            for one, other, person in zip(found, exact, shown, strict=True)
            if (person is not None) is mated
        ]
        first = np.mean([one[:1] == other[:1] for one, other in pairs])
        shared = np.mean([len(set(one) & set(other)) / 10 for one, other in pairs])
        figures[f"recall@1 / @10 of people, {name}"] = f"{first:.1%} / {shared:.1%}"
    return figures


def share_right(found: list[list[int]], shown: list[int | None]) -> float:
    """The share of mated probes for which the right person comes first."""
    firsts = [
        people[:1] == [person] for people, person in zip(found, shown, strict=True) if person is not None
    ]
    return float(np.mean(firsts))
