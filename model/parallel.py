"""Much work on several threads, its results in the order in which it was asked for."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 8  # items per thread that may be under way: a slow one must not leave the other threads idle


def work_through(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """The results in order; only a few items are under way at a time, however many there are."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="work")
    under_way: deque[Future[Result]] = deque()
    try:
        for item in items:
            if len(under_way) >= threads * PATIENCE:
                yield under_way.popleft().result()
            under_way.append(executor.submit(work, item))
        while under_way:
            yield under_way.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)
