"""Much work at once keeps its order and never piles up."""

import asyncio

import pytest

from sameface.model.parallel import Threads, work_through


def test_few_items_are_under_way_at_a_time_and_results_keep_their_order() -> None:
    taken = []

    def items():
        for number in range(1000):
            taken.append(number)
            yield number

    results = work_through(lambda number: number * 2, items(), threads=2)
    assert next(results) == 0
    assert len(taken) < 20
    assert list(results) == [number * 2 for number in range(1, 1000)]


def test_the_seconds_of_every_call_are_observed_also_of_one_that_fails() -> None:
    seen: list[float] = []
    threads = Threads(1, "test", seen.append)
    assert asyncio.run(threads.run(abs, -2)) == 2
    with pytest.raises(ZeroDivisionError):
        asyncio.run(threads.run(divmod, 1, 0))
    threads.close()
    assert len(seen) == 2
    assert all(seconds > 0 for seconds in seen)
