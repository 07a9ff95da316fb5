"""LISTEN and NOTIFY: machines hear of changes early; nothing depends on it, and a lost notice is harmless."""

import threading
from collections.abc import Callable
from contextlib import closing as closed_after
from typing import Any, TypeAlias

import psycopg

from sameface.model.errors import SamefaceError

GATHER_SECONDS = 0.1  # in which changes of a collection are one notice: a commit with one waits for others
PAUSE_SECONDS = 5.0  # before a lost connection is opened anew
CHANNEL = "SELECT 'sameface ' || current_schema()"

Connect: TypeAlias = Callable[[], psycopg.Connection[Any]]


class Announcer:
    """Tells others which collections have changed, on a thread of its own, after the change.

    A notice in the transaction itself would make commits wait for each other.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._changed: set[int] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._closing = threading.Event()

    def announce(self, collection: int) -> None:
        """Tell others soon that the collection with this key has changed."""
        with self._lock:
            self._changed.add(collection)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sameface-announce", daemon=True)
                self._thread.start()
        self._wanted.set()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._wanted.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with closed_after(self._connect()) as connection:
                    connection.autocommit = True
                    self._tell(connection)
            except (psycopg.Error, SamefaceError):  # who searches reads the changes anyway
                self._closing.wait(PAUSE_SECONDS)

    def _tell(self, connection: psycopg.Connection[Any]) -> None:
        [channel] = connection.execute(CHANNEL).fetchone() or [""]
        while self._wanted.wait():
            self._wanted.clear()  # before the look at `_closing`: `close` sets that first
            if self._closing.wait(GATHER_SECONDS):
                return
            with self._lock:
                changed, self._changed = self._changed, set()
            for collection in changed:
                connection.execute("SELECT pg_notify(%s, %s)", [channel, str(collection)])


def listen(connect: Connect, hear: Callable[[int], None], closing: threading.Event) -> None:
    """Call `hear` with the key of each collection that is announced, until `closing` is set."""
    while not closing.is_set():
        try:
            with closed_after(connect()) as connection:
                connection.autocommit = True
                [channel] = connection.execute(CHANNEL).fetchone() or [""]
                connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
                while not closing.is_set():
                    for notice in connection.notifies(timeout=1.0):
                        hear(int(notice.payload))
        except (psycopg.Error, SamefaceError):  # only earlier is lost
            closing.wait(PAUSE_SECONDS)
