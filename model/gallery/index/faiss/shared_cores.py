"""The cores on which FAISS searches, shared by the searches that run at the same time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sameface.model.gallery.index.faiss.candidates import faiss


class SharedCores:
    """Gives each search an equal share of the `cores`.

    A search on several cores waits many times for all of them: two such searches at once, or one beside the
    thread that writes the audit, wait for each other as long as they compute.
    """

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._running = 0
        self._lock = threading.Lock()

    @contextmanager
    def share(self, probes: int) -> Iterator[None]:
        """Let FAISS use this thread's share of the cores in the block, but no more cores than probes."""
        with self._lock:
            self._running += 1
            share = self.cores // self._running
        faiss.omp_set_num_threads(max(1, min(share, probes)))  # of the calling thread
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


CORES = SharedCores(faiss.omp_get_max_threads())  # of the process
