"""Decisions reach the audit soon, or are counted as lost."""

import asyncio
import logging
from contextlib import closing

import pytest

from sameface.model.access.audit import decisions as module
from sameface.model.access.audit.check_audit import check_audit
from sameface.model.access.audit.decisions import Decisions
from sameface.model.errors import SecretKeyRefused, StorageFull
from sameface.model.observer import Observer
from sameface.model.store.access.audit import Columns, Entry, Wanted
from sameface.model.store.records import Collection
from sameface.model.store.store import Store
from tests.conftest import wait_for


class Lost(Observer):
    count = 0

    def lost_decisions(self, count: int) -> None:
        self.count += count


def count_decisions(store: Store) -> int:
    return sum(each.entry.action == "identify" for each in store.audit.page(Wanted(), 100_000))


def decisions_about(staff: Collection, count: int) -> list[Columns]:
    return [Entry.about(staff, "identify", outcome="unknown").to_columns()] * count


def test_decisions_are_written_soon_without_being_asked_for(store: Store, staff: Collection) -> None:
    with closing(Decisions(store, 365)) as decisions:
        decisions.record(decisions_about(staff, 3))
        wait_for(lambda: count_decisions(store) == 3)


def test_what_waits_is_written_and_sealed_at_the_end(store: Store, staff: Collection) -> None:
    with closing(Decisions(store, 365)) as decisions:
        decisions.record(decisions_about(staff, 2500))
    assert count_decisions(store) == 2500
    verdict = check_audit(store)
    assert (verdict.faults, verdict.unsealed) == ([], 0)


def test_no_decision_is_kept_for_0_days(store: Store, staff: Collection) -> None:
    with closing(Decisions(store, 0)) as decisions:
        decisions.record(decisions_about(staff, 3))
    assert count_decisions(store) == 0


def test_a_full_disk_keeps_decisions_waiting_and_then_loses_them(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    lost, write, full = Lost(), store.audit.record, True

    def record(entries: list[Columns]) -> None:
        if full:
            raise StorageFull("There is no room left for the gallery; searches go on.")
        write(entries)

    monkeypatch.setattr(store.audit, "record", record)
    with caplog.at_level(logging.ERROR), closing(Decisions(store, 365, lost)) as decisions:
        decisions.record(decisions_about(staff, 8))
        wait_for(lambda: "writing the audit failed" in caplog.text)
        decisions.record(decisions_about(staff, 8))
        assert lost.count == 6
        full = False
        wait_for(lambda: count_decisions(store) == 10)
    assert caplog.text.count("writing the audit failed") == 1
    assert "staff" not in caplog.text


def test_a_fast_batch_waits_for_room_instead_of_losing_decisions(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 100)
    lost = Lost()
    with closing(Decisions(store, 365, lost)) as decisions:
        for _ in range(5):
            asyncio.run(decisions.record_patiently(decisions_about(staff, 60)))
    assert (lost.count, count_decisions(store)) == (0, 300)


def test_a_batch_does_not_wait_for_what_cannot_be_written(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: list[Columns]) -> None:
        raise StorageFull("There is no room left for the gallery; searches go on.")

    monkeypatch.setattr(module, "MOST_WAITING", 10)
    monkeypatch.setattr(module, "ROOM_SECONDS", 100.0)
    monkeypatch.setattr(store.audit, "record", refuse)
    lost = Lost()
    with closing(Decisions(store, 365, lost)) as decisions:
        for _ in range(2):
            asyncio.run(decisions.record_patiently(decisions_about(staff, 8)))
        assert lost.count == 6


def test_who_is_cancelled_while_waiting_for_room_has_decided(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    lost = Lost()

    async def scenario(decisions: Decisions) -> None:
        decisions.record(decisions_about(staff, 8))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await decisions.record_patiently(decisions_about(staff, 8))

    with closing(Decisions(store, 365, lost)) as decisions:
        asyncio.run(scenario(decisions))
    assert lost.count + count_decisions(store) == 16


def test_what_cannot_be_written_at_the_end_is_counted(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: list[Columns]) -> None:
        raise StorageFull("There is no room left for the gallery; searches go on.")

    monkeypatch.setattr(store.audit, "record", refuse)
    lost = Lost()
    with closing(Decisions(store, 365, lost)) as decisions:
        decisions.record(decisions_about(staff, 7))
    assert lost.count == 7


def test_old_entries_are_cut_every_hour_unless_the_clock_jumped(
    store: Store, staff: Collection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Decisions(store, 1)) as decisions:
        decisions.record(decisions_about(staff, 3))
    later = module.time.time() + 400 * 86_400
    monkeypatch.setattr("sameface.model.access.audit.seals.time.time", lambda: later)
    decisions._cut()  # its own clock is the same as that of the seals
    assert "the clock has jumped" in caplog.text
    assert count_decisions(store) == 3
    decisions._cut()
    assert count_decisions(store) == 0
    assert check_audit(store).faults == []


def test_a_refused_secret_key_is_said_at_the_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMEFACE_SECRET_KEY", "short")
    with pytest.raises(SecretKeyRefused):
        Decisions(store, 365)
