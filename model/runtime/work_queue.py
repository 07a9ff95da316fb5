"""Many callers, few threads: a bounded queue of photo work that refuses instead of growing."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar, cast

from sameface.model.errors import Overloaded
from sameface.model.observer import SILENT, Observer

Item = TypeVar("Item")
Result = TypeVar("Result")

_thread = threading.local()  # its `job` is the one that the thread works on

SMOOTHING = 0.1  # weight of the newest job in the running mean of seconds per job


class WorkQueue:
    """`threads` threads for photo work, and room for `queue` photos that wait for them."""

    def __init__(self, threads: int, queue: int, observer: Observer = SILENT) -> None:
        self.threads = threads
        self.observer = observer
        self.places = threads + queue
        self._taken = 0
        self._seconds_per_job = 0.05
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="sameface")

    @property
    def taken(self) -> int:
        """The number of photos that wait or are in work."""
        return self._taken

    def check_room(self) -> None:
        """Raise `Overloaded` if there is no room for one more photo: better before its upload than after."""
        if self._taken >= self.places:
            raise self._overloaded()

    async def run_all(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The result of `work` for every item, in the caller's context; raises `Overloaded` at once if there
        is no room for all items.

        If the caller is cancelled or an item fails, the other jobs are cancelled: those that wait free their
        places, and those that run stop at their next step.
        """
        self._take_places(len(items))
        jobs = [Job(work, item) for item in items]
        futures = [self._executor.submit(copy_context().run, self._timed, job) for job in jobs]
        for future, job in zip(futures, jobs, strict=True):
            future.add_done_callback(partial(self._give_back, job))
        try:
            return list(await asyncio.gather(*(asyncio.wrap_future(future) for future in futures)))
        finally:
            for future, job in zip(futures, jobs, strict=True):
                future.cancel()
                job.wanted = False

    async def run_in_turn(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        places: asyncio.Semaphore | None = None,
    ) -> list[Result]:
        """The result of `work` for every item, as places become free: a batch waits and is never refused.

        Calls that share `places`, which `share_places` makes, take no more together than one of them alone.
        """
        free = places or self.share_places()

        async def run(item: Item) -> Result:
            async with free:
                while True:
                    try:
                        [result] = await self.run_all(work, [item])
                        return result
                    except Overloaded:
                        await asyncio.sleep(self._seconds_per_job)

        return await asyncio.gather(*(run(item) for item in items))

    def share_places(self) -> asyncio.Semaphore:
        """The places that one batch may take: as many as there are threads."""
        return asyncio.Semaphore(self.threads)

    def close(self) -> None:
        """Finish the photos in work, and cancel those that wait."""
        self._executor.shutdown(cancel_futures=True)

    def _take_places(self, count: int) -> None:
        with self._lock:
            if self._taken + count > self.places:
                raise self._overloaded()
            self._change_taken(count)

    def _give_back(self, job: "Job[Item, Result]", _: "Future[Result]") -> None:
        job.forget()
        with self._lock:
            self._change_taken(-1)

    def _change_taken(self, by: int) -> None:  # with the lock held
        self._taken += by
        self.observer.queue(self._taken)

    def _timed(self, job: "Job[Item, Result]") -> Result:
        start = time.perf_counter()
        self.observer.stage("queue", start - job.asked)
        try:
            return job.do()
        except Unwanted:
            return cast("Result", None)  # which nobody reads: an exception would be reported as never read
        finally:
            self._seconds_per_job += SMOOTHING * (time.perf_counter() - start - self._seconds_per_job)

    def _overloaded(self) -> Overloaded:
        seconds = math.ceil(self._taken * self._seconds_per_job / self.threads)
        return Overloaded(
            f"{self._taken} photos are waiting or in work and {self.places} is the limit; try again later.",
            limit=self.places,
            retry_after_seconds=max(1, seconds),
        )


class Unwanted(Exception):
    """The work was stopped, because nobody waits for it any more; never seen by a caller."""


def stop_if_unwanted() -> None:
    """Raise `Unwanted` if the job of this thread was cancelled; long work asks between its steps."""
    job: Job[object, object] | None = getattr(_thread, "job", None)
    if job and not job.wanted:
        raise Unwanted


class Job(Generic[Item, Result]):
    """Work on one item; a cancelled job stays in the executor's queue for a while, without its photo."""

    def __init__(self, work: Callable[[Item], Result], item: Item) -> None:
        self.asked = time.perf_counter()
        self.wanted = True
        self._work: Callable[[], Result] | None = partial(work, item)

    def do(self) -> Result:
        """Do the work; returns its result."""
        assert self._work
        _thread.job = self
        try:
            return self._work()
        finally:
            _thread.job = None

    def forget(self) -> None:
        """Drop the item, so that its memory is freed."""
        self._work = None
