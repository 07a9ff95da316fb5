"""A bounded queue of entries between the task that reads a batch and the task that answers it."""

import asyncio
from collections import deque
from collections.abc import Sequence

from sameface.api.stream.entries import Entry
from sameface.api.stream.rows import Rows


class Mailbox:
    """A queue of entries, bounded in bytes, so that a body is read no faster than it is answered."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._waiting: deque[Entry | Rows] = deque()
        self.held_bytes = 0
        self._closed = False
        self._changed = asyncio.Condition()

    async def put(self, entries: Sequence[Entry | Rows], *, last: bool = False) -> None:
        """Add `entries` once the queue is below its limit; the `last` ones end it."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.held_bytes < self.limit_bytes)
            self._waiting.extend(entries)
            self._closed = last
            self.held_bytes += sum(entry.size for entry in entries)
            self._changed.notify_all()

    async def take_block(self, most: int, most_bytes: int) -> list[Entry | Rows]:
        """Wait for entries and take at least one, up to `most` or about `most_bytes`; none at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._closed)
            block: list[Entry | Rows] = []
            count = taken = 0
            while self._waiting and count < most and taken < most_bytes:
                block.append(self._waiting.popleft())
                count += block[-1].count
                taken += block[-1].size
            self.held_bytes -= taken
            self._changed.notify_all()
        return block
