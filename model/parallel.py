"""Threads: an ordered, lazy map over many items, and pools by purpose for calls from the event loop."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from sameface.model.errors import NotServedHere

Arguments = ParamSpec("Arguments")
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


class Threads:
    """A few threads for one purpose, so that one kind of work never waits for another.

    `observe` is called on the thread after each call, with the seconds that the call took.
    """

    def __init__(self, count: int, purpose: str, observe: Callable[[float], None] | None = None) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=f"sameface-{purpose}")
        self._observe = observe
        self._refusal: str | None = None

    def refuse(self, reason: str) -> None:
        """Take no calls from now on: callers are told the `reason`."""
        self._refusal = reason

    def check_open(self) -> None:
        """Raise if calls are refused; for callers to check before work whose result they could not use."""
        if self._refusal:
            raise NotServedHere(self._refusal)

    async def run(
        self, work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """The result of `work`, called on one of the threads in the caller's context, off the event loop."""
        self.check_open()
        call = partial(copy_context().run, self._timed, partial(work, *arguments, **named))
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def _timed(self, call: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        try:
            return call()
        finally:
            if self._observe:
                self._observe(time.perf_counter() - start)

    def close(self) -> None:
        """Finish the calls that run, and cancel those that wait."""
        self._executor.shutdown(cancel_futures=True)
