"""OpenVINO, where it is installed: the same numbers, and chosen only if it is faster."""

from pathlib import Path

import numpy as np
import pytest

from sameface.model.bundles.bundle import Bundle
from sameface.model.runtime import prepare_graph as preparation
from sameface.model.runtime.openvino import OpenVinoSession, find_version
from sameface.model.runtime.prepare_graph import prepare_graph
from sameface.model.runtime.session import describe_engines, open_session
from sameface.model.runtime.session_pool import open_sessions
from tests.networks import DIMENSION, build_detector, build_recogniser

pytestmark = pytest.mark.skipif(find_version() is None, reason="the extra `openvino` is not installed")


def test_it_computes_what_onnx_runtime_does(bundle: Bundle, tmp_path: Path) -> None:
    prepared, _ = prepare_graph(bundle, "cpu", tmp_path / "cache")
    sample = preparation.random_input(bundle)
    one, other = open_session(prepared, "cpu"), OpenVinoSession(prepared)
    assert (other.input_name, other.output_names) == (one.input_name, one.output_names)
    for batch in (sample, sample[:1]):
        [expected], [found] = (session.run(None, {"data": batch}) for session in (one, other))
        assert found.shape == (len(batch), DIMENSION)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_an_answer_is_not_overwritten_by_the_next(bundle: Bundle) -> None:
    session = OpenVinoSession(bundle.path)
    first, second, _ = preparation.random_input(bundle)
    [answer] = session.run(["embedding"], {"data": first[np.newaxis]})
    kept = answer.copy()
    session.run(["embedding"], {"data": second[np.newaxis]})
    assert np.array_equal(answer, kept)


@pytest.mark.parametrize(
    ("ratio", "engine", "provider"),
    [(0.5, "openvino", "OpenVINO"), (1.5, "onnxruntime", "CPUExecutionProvider")],
)
def test_what_is_faster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratio: float, engine: str, provider: str
) -> None:
    monkeypatch.setattr(
        preparation, "time_ratio", lambda rival, *_: ratio if rival.engine == "openvino" else 2
    )
    for build in (build_recogniser, build_detector):
        folder = tmp_path / build.__name__
        folder.mkdir()
        bundle = build(folder)
        _, report = prepare_graph(bundle, "cpu", tmp_path / "cache")
        assert report["engine"] == engine
        runtime = open_sessions(bundle, "cpu", tmp_path / "cache", threads=2)
        assert (runtime.device, runtime.provider) == ("cpu", provider)
        assert runtime.run(preparation.random_input(bundle)[:1])


def test_another_version_is_another_choice() -> None:
    assert describe_engines().endswith(f"-ov{find_version()}")
