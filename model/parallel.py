"""An ordered, lazy map over threads."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 8  # items in flight per thread: a slow item must not leave the other threads idle


def work_through(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """Yield `work(item)` in the order of `items`, with at most `threads` * `PATIENCE` items in flight."""
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
