"""FAISS indexes that find the candidates of a probe fast; which of them are the nearest is measured exactly.

Up to `EXACT_ROWS` every row is compared and no such index is needed. Beyond, on a CPU, the rows are sorted
into cells around trained centres and a probe looks at the nearest cells only (IVF), on half-precision
copies; on a GPU every row is compared, in half precision too.
docs/decisions/how-a-gallery-is-searched.md has the figures.
"""

import logging
import math
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.model.errors import DeviceUnavailable
from sameface.model.faces import Floats
from sameface.model.gallery.index.embedding_rows import EmbeddingRows

# FAISS reads it when it is loaded: its threads would spin between searches, on cores that requests need.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import faiss as faiss  # re-exported: benchmarks measure FAISS alone, set up like this

log = logging.getLogger("sameface.index")

Faiss: TypeAlias = Any

EXACT_ROWS = 50_000  # up to here comparing every row costs a few milliseconds at most
CELLS = 4  # times the square root of the rows
SEARCHED_SHARE = 0.1  # of the cells a probe looks at
CELL_SAMPLES = 40  # rows that train a centre
TRAINING_ROUNDS = 8
BLAS_THRESHOLD = 2048  # probes x dimension from which FAISS multiplies matrices: far below its own default
CHUNK_BYTES = 1 << 20  # that FAISS writes and reads at once
OUTGROWN = 4  # times as many rows as a search structure was made for call for a new one


def select_search_device(device: str, requested: str) -> str:
    """`gpu` if the networks run on one and FAISS can use it too; a required one that it cannot is refused."""
    if device == "cpu":
        return "cpu"
    if hasattr(faiss, "index_cpu_to_gpu") and faiss.get_num_gpus():
        return "gpu"
    if requested == "gpu":
        raise DeviceUnavailable("The device must be a GPU, but this FAISS sees none (install sameface[gpu]).")
    log.warning("galleries are searched on the CPU: this FAISS sees no GPU")
    return "cpu"


def compare_all(probes: Floats, embeddings: Floats, count: int) -> tuple[Floats, NDArray[np.int64]]:
    """The nearest rows to each probe and their similarities, by comparing every one.

    A single probe is done before a second core has woken up: it has one. The setting is this thread's own.
    """
    threads = faiss.omp_get_max_threads()
    if len(probes) == 1:
        faiss.omp_set_num_threads(1)
    try:
        similarities, rows = faiss.knn(probes, embeddings, count, faiss.METRIC_INNER_PRODUCT)
    finally:
        faiss.omp_set_num_threads(threads)
    return similarities, rows


def find_candidates(index: Faiss, probes: Floats, count: int, *, alone: bool) -> NDArray[np.int64]:
    """The rows to compare with each probe; a single one that nobody else competes with has all cores."""
    if isinstance(index, faiss.IndexIVF):
        index.parallel_mode = int(alone and len(probes) == 1)  # 0: a core per probe, 1: a core per cell
    rows: NDArray[np.int64] = index.search(probes, count)[1]
    return rows


def choose_kind(rows: int, device: str, now: str = "exact") -> str:
    """How so many rows are searched; a gallery that shrinks a little stays as it is now."""
    if device == "gpu":
        return "exact on gpu"
    return "exact" if rows <= (EXACT_ROWS if now == "exact" else EXACT_ROWS // 2) else "ivf"


def build_faiss_index(kind: str, columns: EmbeddingRows) -> Faiss:
    """An index of the rows, numbered as they are; None where every row is compared anyway."""
    if kind == "exact":
        return None
    index = {"ivf": train_cells, "exact on gpu": open_on_gpu}[kind](columns)
    for rows in columns.blocks(0, columns.count):
        index.add(columns.embeddings[rows])
    return index


def train_cells(columns: EmbeddingRows) -> Faiss:
    """An empty IVF index with its centres trained."""
    cells = 2 ** round(math.log2(CELLS * math.sqrt(columns.count)))
    index: Faiss = faiss.index_factory(columns.dimension, f"IVF{cells},SQfp16", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = TRAINING_ROUNDS
    index.cp.min_points_per_centroid = 1  # a small gallery is searched well enough without FAISS's warning
    choose_share(index)
    index.train(columns.embeddings[:: max(1, columns.count // (cells * CELL_SAMPLES))])
    return index


def choose_share(index: Faiss) -> None:
    """Say how many cells a probe looks at."""
    index.nprobe = max(1, math.ceil(index.nlist * SEARCHED_SHARE))


def open_on_gpu(columns: EmbeddingRows) -> Faiss:
    """An empty flat index in the GPU's memory."""
    options = faiss.GpuClonerOptions()
    options.useFloat16 = True
    flat = faiss.IndexFlatIP(columns.dimension)
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, flat, options)


def prefer_matrix_products() -> None:
    """Let FAISS multiply matrices for small batches too: by its default they are compared row by row."""
    faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD


def write_faiss_index(index: Faiss, write: Callable[[bytes], object]) -> None:
    """Pass the index to `write` in FAISS's own format, in pieces."""
    faiss.write_index(index, faiss.PyCallbackIOWriter(write, CHUNK_BYTES))  # type: ignore[attr-defined]


def read_faiss_index(read: Callable[[int], bytes]) -> Faiss:
    """The index that `write_faiss_index` wrote, from what `read` returns."""
    index: Faiss = faiss.read_index(faiss.PyCallbackIOReader(read, CHUNK_BYTES))  # type: ignore[attr-defined]
    choose_share(index)
    return index
