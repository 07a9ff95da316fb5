"""Locks between threads."""

import threading
import time

from sameface.model.gallery.index.faiss.shared_lock import SharedLock


def test_a_writer_is_not_kept_waiting_by_readers_that_come_and_go() -> None:
    lock, done, written = SharedLock(), threading.Event(), threading.Event()

    def read() -> None:
        while not done.is_set():
            with lock.shared():
                time.sleep(0.01)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()

    def write() -> None:
        with lock.alone():
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(5)
    done.set()
    for thread in (*readers, writer):
        thread.join()
