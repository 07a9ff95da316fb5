"""Rows of a batch, cut into blocks."""

from collections.abc import Iterator

from sameface.api.errors import InvalidRequest
from sameface.api.stream.rows import ROWS_AT_ONCE, Rows, no_rows
from sameface.model.errors import SamefaceError


class Errors(dict[int, SamefaceError]):
    """Errors that count how often all of them are looked through."""

    walked = 0

    def __iter__(self) -> Iterator[int]:
        self.walked += 1
        return super().__iter__()


def test_errors_stay_with_their_rows_and_are_looked_through_once() -> None:
    count, wrong = 3 * ROWS_AT_ONCE + 7, (1200, 0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 3 * ROWS_AT_ONCE + 6)
    errors = Errors({row: InvalidRequest(f"row {row}") for row in wrong})
    rows = Rows(count, [str(row) for row in range(count)], no_rows(4).repeat(0, axis=0), errors)
    blocks = list(rows.in_blocks())
    assert [block.count for block in blocks] == [ROWS_AT_ONCE] * 3 + [7]
    found = {block.numbers[row] - 1: str(error) for block in blocks for row, error in block.errors.items()}
    assert found == {row: f"row {row}" for row in wrong}
    assert errors.walked == 1
