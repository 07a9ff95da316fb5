"""Buffers the answers of a batch for a client that reads more slowly than the server answers."""

import asyncio
import tempfile
from typing import IO

MEMORY_BYTES = 1_000_000  # of each half, before it spills to a file
CHUNK_BYTES = 64_000


class UnreadAnswersFull(Exception):
    """The unread answers would exceed `limit_bytes`."""


class UnreadAnswers:
    """A FIFO buffer of at most `limit_bytes`: in memory while it is small, then in unnamed temporary files.

    It has two halves: one is read while the other is written; once the first is empty, the second is read.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.unread = 0
        self._reading, self._writing = open_half(), open_half()
        self._left = 0  # unread bytes in the half that is read
        self._ended = False
        self._last = b""
        self._changed = asyncio.Event()

    def put(self, content: bytes) -> None:
        """Append `content`; raises UnreadAnswersFull beyond the limit, or if the disk is full."""
        if self.unread + len(content) > self.limit_bytes:
            raise UnreadAnswersFull
        try:
            self._writing.write(content)
        except OSError as error:
            raise UnreadAnswersFull from error
        self.unread += len(content)
        self._changed.set()

    def end(self, last: bytes = b"") -> None:
        """End the buffer with the bytes `last`, which are kept in memory: a full disk must not lose them."""
        self._last, self._ended = last, True
        self._changed.set()

    async def take(self) -> bytes:
        """Wait for bytes and return at most CHUNK_BYTES; empty at the end."""
        while not self.unread:
            if self._ended:
                last, self._last = self._last, b""
                return last
            self._changed.clear()
            await self._changed.wait()
        if not self._left:
            self._turn()
        content = self._reading.read(min(CHUNK_BYTES, self._left))
        self._left -= len(content)
        self.unread -= len(content)
        return content

    def close(self) -> None:
        """Discard the unread answers and their files."""
        self._reading.close()
        self._writing.close()

    def _turn(self) -> None:
        self._reading.close()
        self._reading, self._writing = self._writing, open_half()
        self._reading.seek(0)
        self._left = self.unread


def open_half() -> IO[bytes]:
    """An unnamed temporary file, kept in memory up to MEMORY_BYTES."""
    return tempfile.SpooledTemporaryFile(MEMORY_BYTES)
