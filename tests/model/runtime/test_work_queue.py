"""Many callers and few workers: what is admitted, what is refused, and when a place comes back."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from sameface.model.actor import Actor, acting, current_actor
from sameface.model.errors import Overloaded
from sameface.model.runtime.work_queue import WorkQueue

PATIENCE_SECONDS = 20


class Gate:
    """Work that reports when it begins and ends when it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.opened = threading.Event()
        self.items: list[int] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def work(self, item: int) -> int:
        with self._lock:
            self.items.append(item)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.release()
        assert self.opened.wait(PATIENCE_SECONDS)
        with self._lock:
            self.at_once -= 1
        return item * 10

    async def wait_for_begun(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.begun.acquire, timeout=PATIENCE_SECONDS)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def open_workers(gate: Gate) -> Iterator[Callable[[int, int], WorkQueue]]:
    opened: list[WorkQueue] = []

    def start(threads: int, queue: int) -> WorkQueue:
        opened.append(WorkQueue(threads, queue))
        return opened[-1]

    yield start
    gate.opened.set()
    for workers in opened:
        workers.close()


OpenWorkers = Callable[[int, int], WorkQueue]


async def settle(workers: WorkQueue, taken: int) -> None:
    """Wait until so many places are taken; a place comes back a moment after its caller has gone."""
    for _ in range(PATIENCE_SECONDS * 100):
        if workers.taken == taken:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{workers.taken} places are taken, not {taken}")


def test_results_come_in_the_order_of_the_items(open_workers: OpenWorkers) -> None:
    workers = open_workers(3, 10)
    assert asyncio.run(workers.run_all(lambda item: item * item, range(10))) == [n * n for n in range(10)]
    assert workers.taken == 0


def test_no_items_are_no_work(open_workers: OpenWorkers) -> None:
    workers = open_workers(1, 0)
    assert asyncio.run(workers.run_all(lambda item: item, [])) == []
    assert workers.taken == 0


def test_two_items_are_worked_on_at_the_same_time(open_workers: OpenWorkers) -> None:
    """Each waits for the other: one after the other, neither would end."""
    meeting = threading.Barrier(2, timeout=PATIENCE_SECONDS)
    arrivals = asyncio.run(open_workers(2, 0).run_all(lambda _: meeting.wait(), ["probe", "reference"]))
    assert sorted(arrivals) == [0, 1]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_more_than_the_threads_work_at_once(open_workers: OpenWorkers, gate: Gate, threads: int) -> None:
    workers = open_workers(threads, 6)

    async def scenario() -> list[int]:
        running = asyncio.create_task(workers.run_all(gate.work, range(6)))
        await gate.wait_for_begun(threads)
        assert len(gate.items) == threads
        gate.opened.set()
        return await running

    assert asyncio.run(scenario()) == [0, 10, 20, 30, 40, 50]
    assert gate.most_at_once == threads


def test_a_full_queue_says_no_and_when_to_come_back(open_workers: OpenWorkers, gate: Gate) -> None:
    workers = open_workers(1, 2)

    async def scenario() -> None:
        workers.check_room()
        running = asyncio.create_task(workers.run_all(gate.work, range(3)))
        await gate.wait_for_begun(1)
        with pytest.raises(Overloaded) as at_the_door:
            workers.check_room()
        with pytest.raises(Overloaded) as refusal:
            await workers.run_all(gate.work, [3])
        for error in (at_the_door.value, refusal.value):
            assert error.facts["limit"] == 3
            assert isinstance(error.facts["retry_after_seconds"], int)
            assert error.facts["retry_after_seconds"] >= 1
        gate.opened.set()
        await running
        workers.check_room()

    asyncio.run(scenario())
    assert sorted(gate.items) == [0, 1, 2]
    assert workers.taken == 0


def test_a_caller_gets_all_of_its_places_or_none(open_workers: OpenWorkers, gate: Gate) -> None:
    workers = open_workers(1, 2)

    async def scenario() -> None:
        first = asyncio.create_task(workers.run_all(gate.work, [1, 2]))
        await gate.wait_for_begun(1)
        with pytest.raises(Overloaded):
            await workers.run_all(gate.work, [3, 4])
        assert workers.taken == 2
        last = asyncio.create_task(workers.run_all(gate.work, [5]))
        await settle(workers, 3)
        gate.opened.set()
        assert await asyncio.gather(first, last) == [[10, 20], [50]]

    asyncio.run(scenario())
    assert sorted(gate.items) == [1, 2, 5]
    assert workers.taken == 0


def test_more_items_than_places_are_refused_even_by_idle_workers(open_workers: OpenWorkers) -> None:
    workers = open_workers(1, 1)
    with pytest.raises(Overloaded) as refusal:
        asyncio.run(workers.run_all(lambda item: item, [1, 2, 3]))
    assert refusal.value.facts == {"limit": 2, "retry_after_seconds": 1}
    assert workers.taken == 0


def test_a_caller_who_gives_up_waiting_frees_its_place(open_workers: OpenWorkers, gate: Gate) -> None:
    workers = open_workers(1, 1)

    async def scenario() -> None:
        running = asyncio.create_task(workers.run_all(gate.work, [1]))
        await gate.wait_for_begun(1)
        waiting = asyncio.create_task(workers.run_all(gate.work, [2]))
        await settle(workers, 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await settle(workers, 1)
        another = asyncio.create_task(workers.run_all(gate.work, [3]))
        await settle(workers, 2)
        gate.opened.set()
        assert await asyncio.gather(running, another) == [[10], [30]]

    asyncio.run(scenario())
    assert gate.items == [1, 3]
    assert workers.taken == 0


def test_a_job_that_runs_keeps_its_place_after_its_caller_has_gone(
    open_workers: OpenWorkers, gate: Gate
) -> None:
    workers = open_workers(1, 0)

    async def scenario() -> None:
        running = asyncio.create_task(workers.run_all(gate.work, [1]))
        await gate.wait_for_begun(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0.02)
        assert workers.taken == 1
        with pytest.raises(Overloaded):
            await workers.run_all(gate.work, [2])
        gate.opened.set()
        await settle(workers, 0)

    asyncio.run(scenario())
    assert gate.items == [1]


def test_a_failing_item_fails_its_caller_and_frees_the_items_that_wait(
    open_workers: OpenWorkers, gate: Gate
) -> None:
    workers = open_workers(2, 3)

    def work(item: int) -> int:
        if item == 2:
            assert gate.begun.acquire(timeout=PATIENCE_SECONDS)  # by the first item
            raise ValueError("the second item")
        return gate.work(item)

    async def scenario() -> None:
        with pytest.raises(ValueError, match="the second item"):
            await workers.run_all(work, [1, 2, 3, 4, 5])
        gate.opened.set()
        await settle(workers, 0)
        assert await workers.run_all(work, [6]) == [60]

    asyncio.run(scenario())
    assert {1, 6} <= set(gate.items)
    assert len({3, 4, 5} & set(gate.items)) <= 1  # the freed thread may have begun one before the news came
    assert workers.taken == 0


def test_an_error_of_one_caller_does_not_reach_another(open_workers: OpenWorkers) -> None:
    workers = open_workers(2, 2)

    def fail(_: int) -> int:
        raise ValueError("mine")

    async def scenario() -> list[object]:
        return await asyncio.gather(
            workers.run_all(fail, [1]), workers.run_all(lambda item: item, [2]), return_exceptions=True
        )

    mine, other = asyncio.run(scenario())
    assert isinstance(mine, ValueError)
    assert other == [2]
    assert workers.taken == 0


def test_closing_waits_for_what_runs_and_drops_what_waits(open_workers: OpenWorkers, gate: Gate) -> None:
    workers = open_workers(1, 1)

    async def scenario() -> None:
        running = asyncio.create_task(workers.run_all(gate.work, [1]))
        await gate.wait_for_begun(1)
        waiting = asyncio.create_task(workers.run_all(gate.work, [2]))
        await settle(workers, 2)
        closing = asyncio.create_task(asyncio.to_thread(workers.close))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.opened.set()
        await closing
        assert await running == [10]

    asyncio.run(scenario())
    assert gate.items == [1]
    assert workers.taken == 0


def test_many_callers_at_once_are_all_served_and_leave_no_place_taken(open_workers: OpenWorkers) -> None:
    workers = open_workers(2, 198)

    async def scenario() -> list[list[int]]:
        return await asyncio.gather(*(workers.run_all(lambda item: -item, [n, n]) for n in range(100)))

    assert asyncio.run(scenario()) == [[-n, -n] for n in range(100)]
    assert workers.taken == 0


def test_work_is_done_in_the_context_of_who_asked() -> None:
    queue = WorkQueue(1, 1)

    async def ask() -> list[str]:
        return await queue.run_all(lambda _: current_actor().caller, [0, 1])

    with acting(Actor("ada")):
        assert asyncio.run(ask()) == ["ada", "ada"]
    assert asyncio.run(ask()) == ["local", "local"]
    queue.close()
