"""Counters that all server processes of a machine share: a file that each maps into its memory.

Every key has a place in the file, by its number: how many requests and photos it has sent in each of the last
61 seconds, and how many requests each process works on for it. Nothing waits for the disk: if the machine
crashes, counts may be lost, which would not matter a minute later anyway.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from sameface.model.files import make_private_folder, open_private

WINDOW_SECONDS = 60
BUCKETS = WINDOW_SECONDS + 1  # the running second and a whole minute: no minute ever has more than the limit
PROCESSES = 256
LEASE = np.dtype(
    [
        ("key", "<i8"),  # in the store
        ("left", "<u4"),
        ("until", "<f8"),  # by the machine's monotonic clock
    ]
)
PLACE = np.dtype(
    [
        ("second", "<i8"),  # of the newest bucket, by the machine's monotonic clock
        ("requests", "<u4", BUCKETS),
        ("photos", "<u4", BUCKETS),
        ("at_once", "<u4", PROCESSES),  # requests that each process works on
        ("leased", [("requests", LEASE), ("photos", LEASE)]),  # where machines share a store
    ]
)
GROWTH = 64  # places by which the file grows

Place: TypeAlias = Any  # a record of the dtype PLACE


class Counters:
    """This process's view of the counters in `folder`; several processes may open them at the same time."""

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        file = folder / f"counters-{PLACE.itemsize}"  # of other versions, another one
        open_private(file).close()
        self._file = file.open("r+b", buffering=0)
        self._threads = threading.Lock()
        self._places: npt.NDArray[Any] = np.empty(0, PLACE)
        try:
            with self.locked():
                self._grow(0)
                self.process, self._claim = self._claim_process(folder)
        except OSError:
            self._file.close()
            raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the counters, against other threads and processes, during the block."""
        with self._threads:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def place(self, number: int) -> Place:
        """The place `number` as of now, under the lock: what is older than a minute is cleared."""
        if number >= len(self._places):
            self._grow(number)
        place = self._places[number]
        now = int(time.monotonic())
        passed = now - int(place["second"])
        if not 0 <= passed < BUCKETS:  # long ago, or before the machine was started anew
            place["requests"] = place["photos"] = 0
        else:
            for second in range(now - passed + 1, now + 1):
                place["requests"][second % BUCKETS] = place["photos"][second % BUCKETS] = 0
        place["second"] = now
        return place

    def close(self) -> None:
        """Clear this process's count of concurrent requests, release its number and close the file."""
        with self.locked():
            self._places["at_once"][:, self.process] = 0
        self._places = np.empty(0, PLACE)
        self._claim.close()
        self._file.close()

    def _grow(self, number: int) -> None:
        """Map the file so that it has the place `number`."""
        needed = (number // GROWTH + 1) * GROWTH * PLACE.itemsize
        if os.fstat(self._file.fileno()).st_size < needed:
            os.posix_fallocate(self._file.fileno(), 0, needed)  # a hole on a full disk would kill the process
        self._places = np.memmap(self._file, PLACE, "r+")

    def _claim_process(self, folder: Path) -> tuple[int, BinaryIO]:
        """Take a number that no living process has, and forget the requests of those that died."""
        own: tuple[int, BinaryIO] | None = None
        for number in range(PROCESSES):
            path = folder / f"process-{number}"
            if own and not path.exists():
                continue
            claim = open_private(path)
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the process ends, however it does
            except BlockingIOError:
                claim.close()
                continue
            self._places["at_once"][:, number] = 0
            if own:
                claim.close()
            own = own or (number, claim)
        if own is None:
            raise OSError(errno.EUSERS, f"more than {PROCESSES} processes count", str(folder))
        return own


def seconds_until(counts: npt.NDArray[np.uint32], second: int, needed: int) -> int:
    """The seconds after which `needed` of what was counted by `second` are older than a minute."""
    for age in range(BUCKETS - 1, -1, -1):
        needed -= int(counts[(second - age) % BUCKETS])
        if needed <= 0:
            return BUCKETS - age
    return BUCKETS
