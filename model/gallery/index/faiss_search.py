"""FAISS indexes that find the candidates of a probe fast; the candidates are then ranked exactly.

Up to `EXACT_ROWS` every row is compared and no FAISS index is needed. Beyond, on a CPU, the rows are sorted
into cells around trained centres and a probe is compared with the nearest cells only (IVF), on half-precision
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

# Read when FAISS is loaded: otherwise its threads spin between searches, on cores that requests need.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import faiss as faiss  # re-exported: benchmarks measure FAISS alone, set up like this

log = logging.getLogger("sameface.index")

Faiss: TypeAlias = Any

EXACT_ROWS = 50_000  # up to here comparing every row costs a few milliseconds at most
CELLS = 4  # per square root of the number of rows
SEARCHED_SHARE = 0.1  # of the cells that a probe is compared with
CELL_SAMPLES = 40  # rows per centre to train on
TRAINING_ROUNDS = 8
BLAS_THRESHOLD = 2048  # probes x dimension from which FAISS multiplies matrices: far below its own default
CHUNK_BYTES = 1 << 20  # written or read at once
OUTGROWN = 4  # a FAISS index is rebuilt when it has this many times the rows it was built for


def select_search_device(device: str, requested: str) -> str:
    """`gpu` if the networks run on one and FAISS can use it, else `cpu`; raises if `requested` is `gpu`."""
    if device == "cpu":
        return "cpu"
    if hasattr(faiss, "index_cpu_to_gpu") and faiss.get_num_gpus():
        return "gpu"
    if requested == "gpu":
        raise DeviceUnavailable(
            "The device must be a GPU, but this FAISS sees none (install the extra gpu: make EXTRA=gpu)."
        )
    log.warning("galleries are searched on the CPU: this FAISS sees no GPU")
    return "cpu"


def compare_all(probes: Floats, embeddings: Floats, count: int) -> tuple[Floats, NDArray[np.int64]]:
    """For each probe the similarities and the numbers of the `count` nearest rows, by comparing every row.

    A single probe runs on one core, because it is done before a second one wakes up; FAISS keeps the number
    of cores per calling thread.
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
    """For each probe the numbers of `count` candidate rows; one probe `alone` is searched on all cores."""
    if isinstance(index, faiss.IndexIVF):
        index.parallel_mode = int(alone and len(probes) == 1)  # 0: a core per probe, 1: a core per cell
    rows: NDArray[np.int64] = index.search(probes, count)[1]
    return rows


def choose_kind(rows: int, device: str, now: str = "exact") -> str:
    """The kind of search for this many rows; with hysteresis: a gallery that shrinks a little keeps `now`."""
    if device == "gpu":
        return "exact on gpu"
    return "exact" if rows <= (EXACT_ROWS if now == "exact" else EXACT_ROWS // 2) else "ivf"


def build_faiss_index(kind: str, columns: EmbeddingRows) -> Faiss:
    """A FAISS index of the rows under their own numbers; None for `exact`, which compares every row."""
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
    index.cp.min_points_per_centroid = 1  # else FAISS warns about small galleries
    choose_share(index)
    index.train(columns.embeddings[:: max(1, columns.count // (cells * CELL_SAMPLES))])
    return index


def choose_share(index: Faiss) -> None:
    """Set the number of cells that a probe is compared with."""
    index.nprobe = max(1, math.ceil(index.nlist * SEARCHED_SHARE))


def open_on_gpu(columns: EmbeddingRows) -> Faiss:
    """An empty flat index in the GPU's memory."""
    options = faiss.GpuClonerOptions()
    options.useFloat16 = True
    flat = faiss.IndexFlatIP(columns.dimension)
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, flat, options)


def prefer_matrix_products() -> None:
    """Let FAISS use matrix products for small batches too, which by default it compares row by row."""
    faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD


def blank_rows(index: Faiss, dead: NDArray[np.bool_]) -> None:
    """Overwrite the codes of dead rows in an IVF index with zeros, also while it is searched."""
    cells = index.invlists
    for cell in range(index.nlist):
        if size := cells.list_size(cell):
            gone = dead[faiss.rev_swig_ptr(cells.get_ids(cell), size)]
            codes = faiss.rev_swig_ptr(cells.get_codes(cell), size * index.code_size)
            codes.reshape(size, -1)[gone] = 0


def write_faiss_index(index: Faiss, write: Callable[[bytes], object]) -> None:
    """Pass the index to `write` in FAISS's own format, in pieces."""
    faiss.write_index(index, faiss.PyCallbackIOWriter(write, CHUNK_BYTES))  # type: ignore[attr-defined]


def read_faiss_index(read: Callable[[int], bytes]) -> Faiss:
    """The index that `write_faiss_index` wrote, from the bytes that `read` returns."""
    index: Faiss = faiss.read_index(faiss.PyCallbackIOReader(read, CHUNK_BYTES))  # type: ignore[attr-defined]
    choose_share(index)
    return index
