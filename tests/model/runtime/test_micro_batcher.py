"""Callers share passes, get their own answers, and nobody waits for somebody's hundred faces."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sameface.model.runtime.micro_batcher import MicroBatcher


class Device:
    """Doubles numbers, remembers who was computed together, and can be held up."""

    def __init__(self) -> None:
        self.passes: list[list[float]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def run(self, inputs: np.ndarray) -> np.ndarray:
        self.go_on.wait(10)
        self.passes.append(inputs[:, 0].tolist())
        return inputs * 2


def inputs_of(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).reshape(-1, 1)


@pytest.fixture
def device() -> Device:
    return Device()


def test_everybody_gets_the_answers_to_their_own_questions(device: Device) -> None:
    batcher = MicroBatcher(device.run, 8)
    random = np.random.default_rng(0)
    asked = [random.normal(size=(int(size), 1)).astype(np.float32) for size in random.integers(1, 20, 100)]
    with ThreadPoolExecutor(16) as callers:
        answers = list(callers.map(batcher.run, asked))
    batcher.close()
    for inputs, outputs in zip(asked, answers, strict=True):
        assert np.array_equal(outputs, inputs * 2)
    assert max(map(len, device.passes)) <= 8
    assert sum(map(len, device.passes)) == sum(map(len, asked))
    assert len(device.passes) < sum(map(len, asked)) / 2  # they did share


def test_many_small_requests_do_not_wait_for_a_big_one(device: Device) -> None:
    batcher = MicroBatcher(device.run, 4)
    device.go_on.clear()
    with ThreadPoolExecutor(8) as callers:
        first = callers.submit(batcher.run, inputs_of(0))  # keeps the device busy while the others come
        wait_until(lambda: not batcher._waiting)
        big = callers.submit(batcher.run, inputs_of(*range(100, 140)))
        wait_until(lambda: len(batcher._waiting) == 1)
        small = [callers.submit(batcher.run, inputs_of(number)) for number in (1, 2, 3)]
        wait_until(lambda: len(batcher._waiting) == 4)
        device.go_on.set()
        for future in (first, big, *small):
            future.result(10)
    batcher.close()
    assert device.passes[1] == [100, 1, 2, 3]
    assert device.passes[2] == [101, 102, 103, 104]


def wait_until(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_lone_caller_waits_for_company_no_longer_than_it_must(device: Device) -> None:
    patient = MicroBatcher(device.run, 8, patience_seconds=0.3)
    started = time.monotonic()
    patient.run(inputs_of(1))
    assert time.monotonic() - started >= 0.3
    started = time.monotonic()
    patient.run(inputs_of(*range(8)))  # a full pass waits for nobody
    assert time.monotonic() - started < 0.3
    patient.close()


def test_a_pass_that_fails_fails_its_callers_and_nobody_else(device: Device) -> None:
    def run(inputs: np.ndarray) -> np.ndarray:
        if (inputs == 13).any():
            raise RuntimeError("out of luck")
        return device.run(inputs)

    batcher = MicroBatcher(run, 2)
    with pytest.raises(RuntimeError, match="out of luck"):
        batcher.run(inputs_of(*range(10, 20)))
    time.sleep(0.05)  # until the batcher has looked for more
    with ThreadPoolExecutor() as callers:
        assert callers.submit(batcher.run, inputs_of(1)).result(10).tolist() == [[2]]
    batcher.close()
    assert [12.0, 13.0] not in device.passes
    assert [14.0, 15.0] not in device.passes


def test_what_waits_when_it_closes_is_answered(device: Device) -> None:
    batcher = MicroBatcher(device.run, 4, patience_seconds=60)
    with ThreadPoolExecutor(1) as callers:
        waiting = callers.submit(batcher.run, inputs_of(1))
        wait_until(lambda: batcher._waiting)
        batcher.close()
        assert waiting.result(10).tolist() == [[2]]
