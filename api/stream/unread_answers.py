"""Answers on their way to a client that may read them later than they are made."""

import asyncio
import tempfile
from typing import IO

MEMORY_BYTES = 1_000_000  # of each half, before it goes to a file
CHUNK_BYTES = 64_000


class UnreadAnswersFull(Exception):
    """The client has left more unread than is kept for it."""


class UnreadAnswers:
    """First in, first out, in memory while it is little and in unnamed temporary files beyond, up to a limit.

    It has two halves: one is read while the other is written; when the first is empty, they change places.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.unread = 0
        self._reading, self._writing = open_half(), open_half()
        self._left = 0  # bytes of the half that is read
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, content: bytes) -> None:
        """Add to the end."""
        if self.unread + len(content) > self.limit_bytes:
            raise UnreadAnswersFull
        self._write(content)

    def end(self, content: bytes = b"") -> None:
        """Nothing comes after this; the limit does not hold for it."""
        self._write(content)
        self._ended = True

    async def take(self) -> bytes:
        """The next bytes once there are some, none at the end."""
        while not self.unread:
            if self._ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        if not self._left:
            self._turn()
        content = self._reading.read(CHUNK_BYTES)
        self._left -= len(content)
        self.unread -= len(content)
        return content

    def close(self) -> None:
        """Forget what was not read."""
        self._reading.close()
        self._writing.close()

    def _write(self, content: bytes) -> None:
        self._writing.write(content)
        self.unread += len(content)
        self._changed.set()

    def _turn(self) -> None:
        self._reading.close()
        self._reading, self._writing = self._writing, open_half()
        self._reading.seek(0)
        self._left = self.unread


def open_half() -> IO[bytes]:
    """A file that has no name, and none at all while it is small."""
    return tempfile.SpooledTemporaryFile(MEMORY_BYTES)
