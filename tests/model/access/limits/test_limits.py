"""Limits: what is counted, over all processes of a machine."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from sameface.model.access.keys import draft_key
from sameface.model.access.limits import counters
from sameface.model.access.limits.counters import BUCKETS, Counters
from sameface.model.access.limits.limits import UNCOUNTED, Allowance, Limits, Standing
from sameface.model.errors import RateLimited
from sameface.model.store.access.api_key import ApiKey, KeyLimits


def key_of(number: int = 1, **limits: int) -> ApiKey:
    drafted = draft_key("sf_secret", "test", ["read"], limits=KeyLimits(**limits))
    return ApiKey(**{name: getattr(drafted, name) for name in ApiKey.__slots__} | {"number": number})


class Clock:
    """The machine's monotonic clock, as the counters see it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(counters.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def limits(tmp_path: Path):
    opened = Limits(tmp_path / "limits")
    yield opened
    opened.close()


def refusal(ask) -> RateLimited:
    with pytest.raises(RateLimited) as refused:
        ask()
    return refused.value


def test_a_caller_without_limits_is_not_counted(limits: Limits, tmp_path: Path) -> None:
    assert limits.allowance_of(None) is UNCOUNTED
    assert limits.allowance_of(key_of(faces=3)) is UNCOUNTED
    assert not (tmp_path / "limits").exists()


def test_no_minute_has_more_requests_than_the_limit(limits: Limits, clock: Clock) -> None:
    key, let_in = key_of(requests_per_minute=3), []
    for _ in range(2000):
        clock.now += 0.1
        try:
            limits.allowance_of(key).enter().leave()
            let_in.append(clock.now)
        except RateLimited:
            continue
    assert len(let_in) == 12  # of 200 seconds
    for first in let_in:
        assert sum(first <= moment < first + 60 for moment in let_in) <= 3


def test_who_comes_back_when_told_is_let_in(limits: Limits, clock: Clock) -> None:
    key = key_of(photos_per_minute=10)
    allowance = limits.allowance_of(key).enter()
    for photos in (4, 3, 2):
        allowance.take_photos(photos)
        clock.now += 10
    refused = refusal(lambda: allowance.take_photos(8))
    clock.now += refused.facts["retry_after_seconds"] - 1
    refusal(lambda: allowance.take_photos(8))
    clock.now += 1
    allowance.take_photos(8)


def test_photos_are_counted_all_or_none(limits: Limits) -> None:
    allowance = limits.allowance_of(key_of(photos_per_minute=3)).enter()
    allowance.take_photos(2)
    refusal(lambda: allowance.take_photos(2))
    allowance.check_photos()
    allowance.take_photos(1)
    refusal(allowance.check_photos)
    never = refusal(lambda: allowance.take_photos(4))
    assert "retry_after_seconds" not in never.facts
    assert "alone" in never.detail


def test_requests_at_once_end(limits: Limits) -> None:
    key = key_of(concurrent=2)
    first, _ = limits.allowance_of(key).enter(), limits.allowance_of(key).enter()
    refusal(lambda: limits.allowance_of(key).enter())
    first.leave()
    limits.allowance_of(key).enter()


def test_the_limits_of_all_hold_for_everybody_together(tmp_path: Path) -> None:
    limits = Limits(tmp_path, KeyLimits(requests_per_minute=3))
    limits.allowance_of(None).enter()
    limits.allowance_of(key_of(1)).enter()
    limits.allowance_of(key_of(2, requests_per_minute=100)).enter()
    for key in (None, key_of(1), key_of(2, requests_per_minute=100)):
        assert "All callers" in refusal(lambda key=key: limits.allowance_of(key).enter()).detail
    limits.close()


def test_a_refused_request_counts_nowhere(tmp_path: Path) -> None:
    limits = Limits(tmp_path, KeyLimits(requests_per_minute=5))
    key = key_of(requests_per_minute=1)
    limits.allowance_of(key).enter()
    for _ in range(10):
        refusal(lambda: limits.allowance_of(key).enter())
    for _ in range(4):
        limits.allowance_of(None).enter()
    limits.close()


def test_keys_do_not_count_for_each_other(limits: Limits) -> None:
    for number in (1, 2, 63, 64, 1000):
        limits.allowance_of(key_of(number, requests_per_minute=1)).enter()
    refusal(lambda: limits.allowance_of(key_of(64, requests_per_minute=1)).enter())


def test_standings_say_what_is_left(limits: Limits, clock: Clock) -> None:
    allowance = limits.allowance_of(key_of(requests_per_minute=9, photos_per_minute=5, concurrent=4)).enter()
    clock.now += 10
    allowance.take_photos(2)
    assert allowance.standings() == [
        Standing("requests", 9, 8, 51),
        Standing("photos", 5, 3, 61),
        Standing("concurrent", 4, 3, None),
    ]


def test_the_clock_on_the_wall_does_not_matter(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(requests_per_minute=1)
    limits.allowance_of(key).enter()
    for jump in (-1e6, 1e6):
        monkeypatch.setattr(time, "time", lambda jump=jump: jump)
        refusal(lambda: limits.allowance_of(key).enter())


def test_counts_of_before_the_machine_was_started_are_forgotten(limits: Limits, clock: Clock) -> None:
    key = key_of(requests_per_minute=1)
    limits.allowance_of(key).enter()
    clock.now = 5.0
    limits.allowance_of(key).enter()


def ask(folder: Path, asked: int, answers: "multiprocessing.Queue[int]") -> None:
    limits, key, let_in = Limits(folder), key_of(photos_per_minute=60), 0
    for _ in range(asked):
        try:
            limits.allowance_of(key).enter().take_photos(1)
            let_in += 1
        except RateLimited:
            pass
    answers.put(let_in)


def test_processes_share_a_limit_exactly(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=ask, args=(tmp_path, 100, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    let_in = sum(answers.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    assert let_in == 60


def hold(folder: Path, ready) -> None:
    limits = Limits(folder)
    allowance = limits.allowance_of(key_of(concurrent=1)).enter()
    ready.set()
    time.sleep(60)
    allowance.leave()


def test_a_killed_process_holds_no_requests(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(tmp_path, ready))
    process.start()
    assert ready.wait(30)
    survivor = Limits(tmp_path)
    refusal(lambda: survivor.allowance_of(key_of(concurrent=1)).enter())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    restarted = Limits(tmp_path)
    restarted.open()
    allowance: Allowance = survivor.allowance_of(key_of(concurrent=1)).enter()
    allowance.leave()
    restarted.close()
    survivor.close()


def test_every_process_has_a_number_of_its_own(tmp_path: Path) -> None:
    opened = [Counters(tmp_path) for _ in range(3)]
    assert [each.process for each in opened] == [0, 1, 2]
    opened[1].close()
    again = Counters(tmp_path)
    assert again.process == 1
    for each in (opened[0], opened[2], again):
        each.close()


def test_a_minute_is_kept_to_the_second() -> None:
    assert BUCKETS == 61
