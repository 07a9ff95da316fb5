"""FAISS indexes that find the candidates of a probe fast; the candidates are then ranked exactly.

Up to `EXACT_ROWS` every row is compared and no FAISS index is needed. Beyond, on a CPU, every row has a code
of two bits per number, and a probe is compared with all codes (FAISS's fast scan, which looks up 32 of them
at once); on a GPU every row is compared, in half precision.
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
PIECE = 2  # numbers of an embedding that share one piece of its code
PIECE_BITS = 4  # what fast scan looks up
TRAINING_ROWS = 20_000  # at least: more do not make the codes better
BLAS_THRESHOLD = 2048  # probes x dimension from which FAISS multiplies matrices: far below its own default
CHUNK_BYTES = 1 << 20  # written or read at once
FEWEST_CANDIDATES = 256
CANDIDATES_PER_ROW = 16  # and beside those, for each row to find, because codes misorder rows that are close
MOST_CANDIDATES = 1_024
MOST_SHARE = 0.02  # of the rows, if that is more: beyond, comparing every row is as fast
HALF_PER_ROW = 4  # candidates for each row to find in half precision, which misorders less
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
    """For each probe the similarities and the numbers of the `count` nearest rows, by comparing every row."""
    similarities, rows = faiss.knn(probes, embeddings, count, faiss.METRIC_INNER_PRODUCT)
    return similarities, rows


def count_candidates(kind: str, count: int, rows: int) -> int:
    """How many candidates hold the `count` nearest of `rows`; 0 if every row is better compared."""
    if kind == "exact":
        return 0
    if kind == "exact on gpu":
        wanted, most = count * HALF_PER_ROW, MOST_CANDIDATES
    else:
        wanted = FEWEST_CANDIDATES + count * CANDIDATES_PER_ROW
        most = max(MOST_CANDIDATES, int(rows * MOST_SHARE))
    return wanted if wanted <= most else 0


def rank_candidates(
    rows: NDArray[np.int64], probes: Floats, embeddings: Floats, count: int
) -> tuple[Floats, NDArray[np.int64]]:
    """For each probe the similarities and the numbers of the `count` nearest of its candidates `rows`.

    FAISS compares them where they are, without a copy; -1 stands for no row.
    """
    similarities = np.empty((len(probes), count), np.float32)
    nearest = np.empty((len(probes), count), np.int64)
    given = [faiss.swig_ptr(array) for array in (probes, embeddings, rows)]
    found = [faiss.swig_ptr(array) for array in (similarities, nearest)]
    sizes = (embeddings.shape[1], len(probes), len(embeddings), rows.shape[1], count)
    compare: Faiss = faiss.knn_inner_products_by_idx  # type: ignore[attr-defined]
    compare(
        *given, *sizes, *found, rows.shape[1]
    )  # the last number: from one probe's candidates to the next's
    return similarities, nearest


def choose_kind(rows: int, device: str, now: str = "exact") -> str:
    """The kind of search for this many rows; with hysteresis: a gallery that shrinks a little keeps `now`."""
    if device == "gpu":
        return "exact on gpu"
    return "exact" if rows <= (EXACT_ROWS if now == "exact" else EXACT_ROWS // 2) else "codes"


def build_faiss_index(kind: str, columns: EmbeddingRows) -> Faiss:
    """A FAISS index of the rows under their own numbers; None for `exact`, which compares every row."""
    if kind == "exact":
        return None
    index = {"codes": train_codes, "exact on gpu": open_on_gpu}[kind](columns)
    for rows in columns.blocks(0, columns.count):
        index.add(columns.embeddings[rows])
    return index


def train_codes(columns: EmbeddingRows) -> Faiss:
    """An empty index of codes, trained on a sample of the rows."""
    pieces = columns.dimension // math.gcd(columns.dimension, PIECE)
    index = faiss.IndexPQFastScan(columns.dimension, pieces, PIECE_BITS, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.min_points_per_centroid = 1  # else FAISS warns about small galleries
    index.train(columns.embeddings[:: max(1, columns.count // TRAINING_ROWS)])
    return index


def open_on_gpu(columns: EmbeddingRows) -> Faiss:
    """An empty flat index in the GPU's memory."""
    options = faiss.GpuClonerOptions()
    options.useFloat16 = True
    flat = faiss.IndexFlatIP(columns.dimension)
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, flat, options)


def prefer_matrix_products() -> None:
    """Let FAISS use matrix products for small batches too, which by default it compares row by row."""
    faiss.cvar.distance_compute_blas_threshold = BLAS_THRESHOLD


def blank_codes(index: Faiss, rows: NDArray[np.intp]) -> None:
    """Overwrite the codes of `rows` with that of an embedding of zeros, which is similar to no probe."""
    packer = index.get_CodePacker()
    blocks = faiss.rev_swig_ptr(index.codes.get(), index.codes.size()).reshape(-1, packer.block_size)
    [blank] = index.pq.compute_codes(np.zeros((1, index.d), np.float32))
    for block, place in zip(*np.divmod(rows, packer.nvec), strict=True):
        packer.pack_1(blank, int(place), blocks[block : block + 1])


def write_faiss_index(index: Faiss, write: Callable[[bytes], object]) -> None:
    """Pass the index to `write` in FAISS's own format, in pieces."""
    faiss.write_index(index, faiss.PyCallbackIOWriter(write, CHUNK_BYTES))  # type: ignore[attr-defined]


def read_faiss_index(read: Callable[[int], bytes]) -> Faiss:
    """The index that `write_faiss_index` wrote, from the bytes that `read` returns."""
    return faiss.read_index(faiss.PyCallbackIOReader(read, CHUNK_BYTES))  # type: ignore[attr-defined]
