"""Measures the batch size at which a device is fastest per image."""

import time
from collections.abc import Callable

import numpy as np

from sameface.model.faces import Floats

SIZES = (1, 2, 4, 8, 16, 32)
ROUNDS = 5
WORTHWHILE = 0.9  # a larger batch must take less than this share of the time per image


def measure_batch_size(run: Callable[[Floats], object], sample: Floats) -> int:
    """The smallest batch size beyond which the time per image no longer falls clearly."""
    chosen, best = 1, time_per_image(run, sample, 1)
    for size in SIZES[1:]:
        seconds = time_per_image(run, sample, size)
        if seconds < WORTHWHILE * best:
            chosen, best = size, seconds
        elif size > 2 * chosen:  # one size without a gain may be an accident, two are not
            break
    return chosen


def time_per_image(run: Callable[[Floats], object], sample: Floats, size: int) -> float:
    """Seconds per image in batches of `size`, the fastest of `ROUNDS` passes."""
    batch = np.repeat(sample[:1], size, axis=0)
    run(batch)  # a warm-up: the first pass of a size may allocate memory
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run(batch)
        best = min(best, time.perf_counter() - start)
    return best / size
