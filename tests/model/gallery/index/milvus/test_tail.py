"""The tail drops what Milvus shows, whoever else follows or trims it meanwhile."""

import threading

import numpy as np
import pytest

from sameface.model.gallery.index.milvus.tail import Tail
from sameface.model.store.records import FaceBlock, FaceChanges
from tests.model.people import random_units
from tests.networks import DIMENSION

NOBODY = np.empty(0, np.int64)


def came(sequence: int, *faces: int) -> FaceChanges:
    keys = np.array(faces)
    return FaceChanges(sequence, FaceBlock(keys, keys, random_units(len(faces), DIMENSION, faces[0])), NOBODY)


def tail_of(*changes: FaceChanges, start: int = 1) -> Tail:
    tail = Tail(DIMENSION, start)
    tail.follow(changes[-1].sequence, lambda _: changes)
    return tail


def test_what_milvus_shows_is_dropped_block_by_block() -> None:
    tail = tail_of(came(3, 10, 11), came(5, 12))
    tail.trim(4)
    assert (tail.start, tail.size) == (3, 1)
    tail.trim(5)
    assert (tail.start, tail.size) == (5, 0)


def test_of_two_searches_that_wait_to_trim_the_second_has_nothing_to_do() -> None:
    tail = tail_of(came(3, 10), came(9, 11))

    class Overtaken:
        """The lock, which another search gets first."""

        def __init__(self, lock: threading.Lock) -> None:
            self.lock = lock

        def __enter__(self) -> None:
            tail._changing = self.lock
            tail.trim(5)
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    tail._changing = Overtaken(tail._changing)
    tail.trim(5)
    assert (tail.start, tail.size) == (3, 1)


def test_a_part_of_all_faces_that_were_not_read_to_the_end_is_dropped() -> None:
    tail = Tail(DIMENSION, 0)

    def read_in_vain(_: int):
        yield came(0, 10, 11)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        tail.follow(9, read_in_vain)
    tail.trim(9)
    assert (tail.start, tail.size) == (9, 0)
