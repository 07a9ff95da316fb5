"""How many images a device should take at once, found by trying."""

import time
from collections.abc import Callable

import numpy as np

from sameface.model.faces import Floats

SIZES = (1, 2, 4, 8, 16, 32)
ROUNDS = 5
WORTHWHILE = 0.9  # of the time per image that a larger batch may take at most, to be worth the wait


def measure_batch_size(run: Callable[[Floats], object], sample: Floats) -> int:
    """The smallest batch beyond which images do not get clearly cheaper; 1 where batches do not pay."""
    chosen, best = 1, time_per_image(run, sample, 1)
    for size in SIZES[1:]:
        seconds = time_per_image(run, sample, size)
        if seconds < WORTHWHILE * best:
            chosen, best = size, seconds
        elif size > 2 * chosen:  # one size without a gain may be an accident, two are not
            break
    return chosen


def time_per_image(run: Callable[[Floats], object], sample: Floats, size: int) -> float:
    """Seconds, the best of a few rounds."""
    batch = np.repeat(sample[:1], size, axis=0)
    run(batch)  # the first pass of a size may set things up
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run(batch)
        best = min(best, time.perf_counter() - start)
    return best / size
