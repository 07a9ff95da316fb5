"""Bare FAISS: builds, reads and searches the index of the server, without the server.

Codes are compared first and their candidates ranked by the embeddings, by FAISS's own `IndexRefineFlat`, with
as many candidates as the server takes: codes alone would find half of the people.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared.server import read_resident_bytes
from sameface.model.faces import Floats
from sameface.model.gallery.index.faiss.candidates import (
    Faiss,
    build_faiss_index,
    count_candidates,
    faiss,
)
from sameface.model.gallery.index.faiss.face_index import FaceIndex

BLOCK = 256  # probes per search
NEIGHBOURS = 10
RANKED = 100  # faces per probe, enough to find ten people among them


class BareIndex:
    """The server's index, used by FAISS alone."""

    def __init__(self, index: FaceIndex) -> None:
        self.columns = index.columns
        start = time.perf_counter()
        built = self._build(index.kind)
        self.build_seconds = time.perf_counter() - start
        self._faiss: Faiss = built if index.faiss_index is None else index.faiss_index
        self._kind = index.kind
        self._refined: Faiss = self._faiss
        if index.kind == "codes":
            self._refined = faiss.IndexRefineFlat(self._faiss, faiss.swig_ptr(self.columns.embeddings))

    def _build(self, kind: str) -> Faiss:
        """Build the index as the server does; for `exact`, where the server builds none, a flat one."""
        if kind != "exact":
            return build_faiss_index(kind, self.columns)
        flat = faiss.IndexFlatIP(self.columns.dimension)
        flat.add(self.columns.embeddings)
        return flat

    def read_again(self) -> tuple[float, float]:
        """Seconds that a new process takes to read the index from a file, and its resident bytes per face."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bare.index"
            faiss.write_index(self._faiss, str(path))
            command = [sys.executable, "-m", "benchmarks.rivals.bare", str(path)]
            said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return said["seconds"], said["bytes"] / self.columns.count

    def search_one(self, probe: Floats) -> None:
        """Search the nearest faces of one probe."""
        self._search(probe, NEIGHBOURS)

    def search_many(self, probes: Floats) -> None:
        """Search the nearest faces of many probes, in blocks."""
        for first in range(0, len(probes), BLOCK):
            self._search(probes[first : first + BLOCK], NEIGHBOURS)

    def find_people(self, probes: Floats) -> list[list[int]]:
        """The people whose faces are nearest to each probe, nearest first."""
        return self._name(self._search(probes, RANKED))

    def find_people_exactly(self, probes: Floats) -> list[list[int]]:
        """The people whose faces are nearest to each probe, by comparing every embedding."""
        return self._name(faiss.knn(probes, self.columns.embeddings, RANKED, faiss.METRIC_INNER_PRODUCT)[1])

    def _search(self, probes: Floats, faces: int) -> NDArray[np.int64]:
        """The rows of the nearest `faces` of each probe."""
        if self._kind == "codes":
            self._refined.k_factor = count_candidates(self._kind, faces, self.columns.count) / faces
        rows: NDArray[np.int64] = self._refined.search(probes, faces)[1]
        return rows

    def _name(self, rows: NDArray[np.int64]) -> list[list[int]]:
        """The first ten people of each probe, by its `rows` of nearest faces; a row of -1 is no face."""
        return [list(dict.fromkeys(self.columns.people[near[near >= 0]].tolist()))[:10] for near in rows]


def main() -> None:
    """Read the index at a path, and print the seconds that took and the resident bytes it holds."""
    before, start = read_resident_bytes(os.getpid()), time.perf_counter()
    index = faiss.read_index(sys.argv[1])
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "bytes": read_resident_bytes(os.getpid()) - before}))
    del index  # kept until its memory is measured


if __name__ == "__main__":
    main()
