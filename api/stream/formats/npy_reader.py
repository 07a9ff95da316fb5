"""Reads a batch of probes that is one array in NumPy's format, while it arrives."""

import io
import math

import numpy as np

from sameface.api.errors import InvalidRequest
from sameface.api.stream.entries import Entry
from sameface.api.stream.rows import Rows

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000  # NumPy itself reads no longer one
READERS = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
LARGEST_SIZE = 2**63  # of a dimension, beyond NumPy's own
LENGTH_BYTES = {1: 2, 2: 4}  # of the header's length, by version


class NpyReader:
    """Reads the rows of a C-ordered array of little-endian float32; the id of a row is its number from 0."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.held = bytearray()
        self._announced: int | None = None  # rows, once the header is read
        self._number = 0  # rows that came
        self._broken = False

    def read(self, chunk: bytes, *, last: bool) -> list[Entry | Rows]:
        """The rows that `chunk` completes; once something is wrong with the array, the rest is ignored."""
        if self._broken:
            return []
        self.held += chunk
        found: list[Entry | Rows] = []
        try:
            if self._announced is None:
                self._announced = self._read_header(last=last)
            if self._announced is not None:
                found += self._take_rows(self._announced - self._number).in_blocks()
                self._check_length(self._announced, last=last)
        except InvalidRequest as error:
            self._broken = True
            self.held.clear()
            found.append(Entry(self._number + 1, error))
        return found

    def _read_header(self, *, last: bool) -> int | None:
        """The number of rows that the header announces; None while it is incomplete."""
        if not self.held.startswith(MAGIC[: len(self.held)]):
            raise InvalidRequest("The body is no array in NumPy's format: it is what numpy.save writes.")
        if len(self.held) > len(MAGIC):
            version = self.held[len(MAGIC)]
            if version not in READERS:
                raise InvalidRequest("The array is of another version of NumPy's format than 1 and 2.")
            begins = len(MAGIC) + 2 + LENGTH_BYTES[version]
            length = int.from_bytes(self.held[len(MAGIC) + 2 : begins], "little")
            if len(self.held) >= begins and length > LONGEST_HEADER:
                raise InvalidRequest(f"The array's header may have {LONGEST_HEADER} bytes.")
            if len(self.held) >= begins + length:
                header = bytes(self.held[len(MAGIC) + 2 : begins + length])
                del self.held[: begins + length]
                return self._check_header(version, header)
        if last:
            raise InvalidRequest("The array ends before its header does.")
        return None

    def _check_header(self, version: int, header: bytes) -> int:
        """The number of rows; raises unless the array is what this server takes."""
        try:
            shape, fortran_order, dtype = READERS[version](io.BytesIO(header), max_header_size=LONGEST_HEADER)
        except Exception as error:  # whatever NumPy's own parser meets in it
            raise InvalidRequest("The array's header cannot be read.") from error
        if any(abs(size) > LARGEST_SIZE for size in shape):  # Python refuses to print the longest of them
            raise InvalidRequest("The array's header has a number that is too large.")
        fits = len(shape) == 2 and shape[1] == self.dimension and shape[0] >= 0
        if dtype != np.dtype("<f4") or dtype.hasobject or not fits or (fortran_order and min(shape) > 1):
            order = "Fortran" if fortran_order else "C"
            raise InvalidRequest(
                f"Probes are little-endian float32 (<f4) of shape (probes, {self.dimension}) in C order;"
                f" this array is {dtype.str} of shape {shape} in {order} order."
            )
        return int(shape[0])

    def _take_rows(self, most: int) -> Rows:
        """The complete rows among the bytes that are held, at `most` so many."""
        row_bytes = 4 * self.dimension
        count = min(most, len(self.held) // row_bytes)
        taken = bytes(self.held[: count * row_bytes])
        del self.held[: count * row_bytes]
        ids = [str(number) for number in range(self._number, self._number + count)]
        self._number += count
        return Rows(self._number, ids, np.frombuffer(taken, "<f4").reshape(count, self.dimension))

    def _check_length(self, announced: int, *, last: bool) -> None:
        """Raise if there are more rows than were announced, or in the end fewer."""
        came = self._number + len(self.held) / (4 * self.dimension)
        if came > announced or (last and came < announced):
            raise InvalidRequest(
                f"The array's header announces {announced} rows, and"
                f" {'more' if came > announced else math.floor(came)} came."
            )
