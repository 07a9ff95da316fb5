"""The open sessions of a network: what they run on, and that none is lost."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.runtime.session_pool import open_sessions
from tests.networks import DIMENSION, random_pixels, run_published


def test_a_runtime_says_what_it_runs_on(bundle: Bundle, cache: Path) -> None:
    runtime = open_sessions(bundle, "cpu", cache)
    assert (runtime.device, runtime.provider, runtime.batch_size) == ("cpu", "CPUExecutionProvider", 1)


def test_callers_on_more_threads_than_sessions_get_their_own_answers(bundle: Bundle, cache: Path) -> None:
    pixels = random_pixels(bundle, 24)
    runtime = open_sessions(bundle, "cpu", cache, threads=2)
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda pixel: runtime.run(pixel[np.newaxis])[0][0], pixels))
    assert np.array(found) == pytest.approx(run_published(bundle, pixels), rel=1e-4, abs=1e-4)


@pytest.mark.timeout(20)
def test_a_failed_run_does_not_lose_its_session(bundle: Bundle, cache: Path) -> None:
    runtime = open_sessions(bundle, "cpu", cache)
    with pytest.raises(Exception, match="Invalid rank"):
        runtime.run(np.zeros((1, 1), np.float32))
    [found] = runtime.run(random_pixels(bundle, 1))
    assert found.shape == (1, DIMENSION)
