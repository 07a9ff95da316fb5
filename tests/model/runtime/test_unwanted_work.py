"""Work whose caller has gone, or whose sibling has failed, stops and leaves nothing behind."""

import asyncio
import gc
import threading
import weakref

import pytest

from sameface.model.runtime.work_queue import Unwanted, WorkQueue, stop_if_unwanted

PATIENCE_SECONDS = 20


def test_a_cancelled_caller_leaves_nothing_of_its_photo_behind() -> None:
    """Its job may stay in the executor's queue until a worker comes by."""
    workers, go_on = WorkQueue(threads=1, queue=9), threading.Event()

    class Photo:
        pass

    async def give_up() -> Photo | None:
        running = asyncio.ensure_future(workers.run_all(lambda _: go_on.wait(), [None]))
        photo = Photo()
        waiting = asyncio.ensure_future(workers.run_all(id, [photo]))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})
        kept = weakref.ref(photo)
        del photo, waiting
        gc.collect()
        found = kept()
        go_on.set()
        await running
        return found

    assert asyncio.run(give_up()) is None
    workers.close()


def test_work_that_nobody_waits_for_any_more_stops_at_its_next_step() -> None:
    queue, begun, stopped = WorkQueue(1, 1), threading.Event(), threading.Event()

    def work(_: int) -> None:
        begun.set()
        try:
            while not stopped.wait(0.001):
                stop_if_unwanted()
        except Unwanted:
            stopped.set()

    async def give_up() -> None:
        asked = asyncio.ensure_future(queue.run_all(work, [1]))
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        asked.cancel()

    asyncio.run(give_up())
    assert stopped.wait(PATIENCE_SECONDS)
    queue.close()
    stop_if_unwanted()  # outside a job nothing is unwanted


def test_the_failure_of_one_photo_stops_the_other() -> None:
    queue, stopped = WorkQueue(2, 2), threading.Event()
    both = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def work(item: int) -> None:
        both.wait()
        if item == 0:
            raise ValueError("a bad photo")
        try:
            while not stopped.wait(0.001):
                stop_if_unwanted()
        except Unwanted:
            stopped.set()

    with pytest.raises(ValueError, match="a bad photo"):
        asyncio.run(queue.run_all(work, [0, 1]))
    assert stopped.wait(PATIENCE_SECONDS)
    queue.close()
