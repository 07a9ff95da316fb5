"""Much work at once keeps its order and never piles up."""

from sameface.model.parallel import work_through


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
