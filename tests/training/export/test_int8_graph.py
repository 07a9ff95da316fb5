"""Eight bits: what is exact stays exact, and each step loses less than without it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused
from sameface.model.observer import ignore_progress
from sameface.model.runtime.precision.faces import load_faces
from sameface.training.export import int8_search
from sameface.training.export.fold_graph import fold_graph
from sameface.training.export.int8_graph import equalise, measure_corrections, measure_ranges, quantise
from sameface.training.export.int8_layers import find_layers
from sameface.training.export.int8_search import embed, round_network
from tests.networks import save_network, tensor
from tests.training.export.int8_networks import build_uneven


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build_uneven(tmp_path_factory.mktemp("uneven"))


@pytest.fixture(scope="module")
def inputs(bundle: Bundle) -> list:
    return [bundle.preprocess(crop[np.newaxis]) for crop in load_faces(bundle)[:24]]


def measure_loss(exact: ModelProto, rounded: ModelProto, inputs: list) -> float:
    return float(1 - (embed(exact, inputs) * embed(rounded, inputs)).sum(1).mean())


def test_the_layers_are_found_with_what_they_need(bundle: Bundle) -> None:
    first, each, last = find_layers(fold_graph(bundle))
    assert [layer.activation for layer in (first, each, last)] == ["centred", "bent", "positive"]
    assert [layer.depthwise for layer in (first, each, last)] == [False, True, False]
    assert [layer.bias for layer in (first, each, last)] == [None, "each_bias", None]


def test_equalising_changes_ranges_and_not_the_output(bundle: Bundle, inputs: list) -> None:
    network, even = fold_graph(bundle), fold_graph(bundle)
    ranges = measure_ranges(even, inputs)
    before = ranges["bent"].reach
    equalise(even, ranges)
    assert before.max() / before.min() > 5
    assert ranges["bent"].reach == pytest.approx(before.max(), rel=1e-4)  # depthwise: all alike
    assert embed(even, inputs) == pytest.approx(embed(network, inputs), abs=1e-4)
    again = measure_ranges(even, inputs)
    for name in ranges:
        assert again[name].reach == pytest.approx(ranges[name].reach, rel=1e-3, abs=1e-3)


def test_equalised_and_corrected_it_loses_least(bundle: Bundle, inputs: list) -> None:
    network, even = fold_graph(bundle), fold_graph(bundle)
    plain_ranges, ranges = measure_ranges(network, inputs), measure_ranges(even, inputs)
    equalise(even, ranges)
    corrections = measure_corrections(even, ranges, inputs)
    plain = measure_loss(network, quantise(network, plain_ranges), inputs)
    equal = measure_loss(network, quantise(even, ranges), inputs)
    best = measure_loss(network, quantise(even, ranges, corrections=corrections), inputs)
    assert equal < plain / 2
    assert best < plain / 2
    assert 0 < best < 0.01


def test_weights_are_seven_bits_with_a_scale_per_channel(bundle: Bundle, inputs: list) -> None:
    network = fold_graph(bundle)
    rounded = quantise(network, measure_ranges(network, inputs))
    onnx.checker.check_model(rounded)
    stored = {each.name: each for each in rounded.graph.initializer}
    for layer in find_layers(network):
        steps = numpy_helper.to_array(stored[f"{layer.weights}_steps"])
        scale = numpy_helper.to_array(stored[f"{layer.weights}_scale"])
        assert steps.dtype == np.int8
        assert np.abs(steps).max((1, 2, 3)).tolist() == [63] * len(scale)
        right = numpy_helper.to_array(next(w for w in network.graph.initializer if w.name == layer.weights))
        assert np.abs(steps * scale[:, None, None, None] - right).max() <= scale.max() / 2 * 1.001
        assert layer.weights not in stored


def test_the_correction_is_the_mean_error_of_each_layer(bundle: Bundle, inputs: list) -> None:
    """Rounded with them, the first layer's mean output is the exact one's; without them it is not."""
    network = fold_graph(bundle)
    ranges = measure_ranges(network, inputs)
    corrections = measure_corrections(network, ranges, inputs)
    others = ["filtered", "summed"]

    def mean(graph: ModelProto) -> np.ndarray:
        from sameface.training.export.int8_graph import run_inside

        return np.mean([values[0].mean((0, 2, 3)) for values in run_inside(graph, ["wide"], inputs)], 0)

    right, without = mean(network), mean(quantise(network, ranges, others))
    corrected = mean(quantise(network, ranges, others, corrections))
    assert np.abs(corrected - right).max() < np.abs(without - right).max() / 10


def test_layers_that_lose_too_much_stay_exact(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_search, "equalise", lambda *_: None)  # so that there is something to lose
    crops = load_faces(bundle)
    loose = round_network(bundle, crops, 0.9, ignore_progress)
    assert (loose.layers, loose.exact) == (3, ())
    inputs = [bundle.preprocess(crop[np.newaxis]) for crop in crops]
    exact = embed(fold_graph(bundle), inputs)
    reached = float((embed(loose.network, inputs) * exact).sum(1).mean())
    strict = round_network(bundle, crops, reached + (1 - reached) / 5, ignore_progress)
    assert len(strict.exact) == 1
    assert (embed(strict.network, inputs) * exact).sum(1).mean() > reached
    kinds = [node.op_type for node in strict.network.graph.node]
    assert kinds.count("QuantizeLinear") == 2
    with pytest.raises(BundleRefused, match=r"loses too much in eight bits: .* 1 is asked for"):
        round_network(bundle, crops, 1.0, ignore_progress)


def test_layers_that_share_a_bias_are_left_alone(tmp_path: Path, inputs: list) -> None:
    """Equalised, the first layer's bias is divided: the second one needs it as it is."""
    bundle = build_uneven(tmp_path)
    network = onnx.load(bundle.path)
    for node in network.graph.node:
        if node.output[0] in ("wide", "filtered"):
            node.input[2:] = ["each_bias"]
    onnx.save(network, bundle.path)
    exact, even = fold_graph(bundle), fold_graph(bundle)
    assert [layer.output for layer in find_layers(exact)] == ["summed"]
    equalise(even, measure_ranges(even, inputs))
    assert embed(even, inputs) == pytest.approx(embed(exact, inputs), abs=1e-4)


def test_a_graph_that_the_engine_does_not_run_is_refused(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("Check 'false' failed: unsupported operator")

    monkeypatch.setattr(int8_search, "open_session", refuse)
    with pytest.raises(BundleRefused, match=r"cannot be rounded: .* does not run it: Check .* unsupported"):
        round_network(bundle, load_faces(bundle)[:4], 0.9, ignore_progress)


def test_graphs_that_cannot_be_rounded_are_refused(bundle: Bundle, inputs: list, tmp_path: Path) -> None:
    crops = load_faces(bundle)[:4]
    small = build_uneven(tmp_path / "twice")
    network = fold_graph(small)
    onnx.save(quantise(network, measure_ranges(network, inputs)), small.path)
    with pytest.raises(BundleRefused, match="is of eight bits already"):
        round_network(small, crops, 0.9, ignore_progress)

    flat = build_uneven(tmp_path / "flat")
    nodes = [
        helper.make_node("AveragePool", ["data"], ["grid"], kernel_shape=[14, 14], strides=[14, 14]),
        helper.make_node("Flatten", ["grid"], ["embedding"]),
    ]
    save_network(flat.path, nodes, [("data", [1, 3, 112, 112])], [("embedding", [1, 192])], [tensor("x", 1)])
    with pytest.raises(BundleRefused, match="no convolution or matrix product with constant float32"):
        round_network(flat, crops, 0.9, ignore_progress)

    odd = build_uneven(tmp_path / "odd")
    graph = onnx.load(odd.path)
    graph.graph.node.add().CopyFrom(helper.make_node("Nonsense", ["embedding"], ["more"]))
    graph.graph.output.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, None))
    onnx.save(graph, odd.path)
    with pytest.raises(BundleRefused, match="cannot be folded to opset 13"):
        round_network(odd, crops, 0.9, ignore_progress)
