"""The thread that tells other machines of changes."""

import threading
from typing import Any

import pytest

notices = pytest.importorskip("sameface.model.store.databases.postgres.notices")


class Silent:
    """A connection on which nothing is heard."""

    autocommit = False

    def execute(self, *_: Any) -> "Silent":
        return self

    def fetchone(self) -> list[str]:
        return ["channel"]

    def close(self) -> None:
        pass


def test_it_ends_whenever_it_is_closed() -> None:
    announcer = notices.Announcer(Silent)

    class ClosedMeanwhile(threading.Event):
        """Set, as `close` does it, in the moment after somebody has found it unset."""

        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002
            before = self.is_set()
            self.set()
            announcer._wanted.set()
            return before

    announcer._closing = ClosedMeanwhile()
    announcer.announce(1)
    announcer._thread.join(10)
    assert not announcer._thread.is_alive()
