"""Rewritten operators compute what they replace."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from sameface.model.runtime.graph_rewrites import has_prelu, split_prelu
from sameface.model.runtime.session import open_session
from tests.networks import save_network, tensor


def prelu_network(path: Path, slope: np.ndarray) -> bytes:
    """Two PRelus in a row that share their slopes."""
    nodes = [
        helper.make_node("PRelu", ["x", "slope"], ["middle"]),
        helper.make_node("PRelu", ["middle", "slope"], ["y"]),
    ]
    shape = [2, len(slope), 7, 5]
    weights = [tensor("slope", slope.reshape(-1, 1, 1))]
    return save_network(path, nodes, [("x", shape)], [("y", shape)], weights).read_bytes()


@pytest.mark.parametrize(
    "slopes",
    [(0.25, 0.1, 0.9), (-0.5, -1.0, -3.0), (1.5, 2.0, 7.0), (0.0, 1.0, -1.0)],
    ids=["between 0 and 1", "negative", "above 1", "0 and 1"],
)
def test_a_split_prelu_computes_the_same(tmp_path: Path, slopes: tuple[float, ...]) -> None:
    original = prelu_network(tmp_path / "prelu.onnx", np.array(slopes))
    network = onnx.load_from_string(original)
    assert has_prelu(network)
    split_prelu(network)
    onnx.checker.check_model(network, full_check=True)
    assert not has_prelu(network)
    x = np.random.default_rng(2).normal(0, 1, (2, 3, 7, 5)).astype(np.float32)
    expected, found = (
        open_session(content, "cpu").run(None, {"x": x})[0]
        for content in (original, network.SerializeToString())
    )
    by_hand = np.where(x < 0, x * np.reshape(slopes, (3, 1, 1)), x)
    by_hand = np.where(by_hand < 0, by_hand * np.reshape(slopes, (3, 1, 1)), by_hand)
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert found == pytest.approx(by_hand, rel=1e-5, abs=1e-5)


def test_a_prelu_with_computed_slopes_stays(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Abs", ["x"], ["slope"]),
        helper.make_node("PRelu", ["x", "slope"], ["y"]),
    ]
    path = save_network(tmp_path / "x.onnx", nodes, [("x", [1, 4])], [("y", [1, 4])], [])
    network = onnx.load(path)
    split_prelu(network)
    assert [node.op_type for node in network.graph.node] == ["Abs", "PRelu"]
