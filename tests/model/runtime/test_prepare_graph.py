"""Graphs are prepared without changing what they compute, and cached."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sameface.model.bundles.bundle import Bundle, load_bundle, save_bundle
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.errors import BundleRefused
from sameface.model.runtime import prepare_graph as preparation
from sameface.model.runtime.graph_rewrites import has_quantizers, strip_initialiser_inputs
from sameface.model.runtime.prepare_graph import find_batch_size, prepare_graph
from sameface.model.runtime.session import open_session
from sameface.model.runtime.session_pool import open_sessions
from tests.networks import (
    DIMENSION,
    build_detector,
    build_recogniser,
    random_pixels,
    run_published,
    save_network,
    tensor,
)

# The graph.


@pytest.mark.parametrize(("rounds", "taken"), [(True, True), (False, False)])
def test_a_rival_of_an_eight_bit_graph_is_proved_by_faces(
    bundle: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch, rounds: bool, taken: bool
) -> None:
    """Engines round at other places: outputs on noise differ, embeddings of faces hardly do."""
    differences = iter((0.0, 0.05, 0.05))
    monkeypatch.setattr(preparation, "compare_outputs", lambda *_: next(differences))
    monkeypatch.setattr(preparation, "time_ratio", lambda *_: 0.5)
    monkeypatch.setattr(preparation.graph, "has_quantizers", lambda _: rounds)
    _, report = prepare_graph(bundle, "cpu", cache)
    assert (report["split_prelu"] or report["engine"] == "openvino") is taken


def test_rounding_is_seen(bundle: Bundle) -> None:
    network = onnx.load(bundle.path)
    assert not has_quantizers(network)
    network.graph.node.add().CopyFrom(helper.make_node("QuantizeLinear", ["data", "s"], ["steps"]))
    assert has_quantizers(network)


def test_a_batch_of_three_equals_three_singles(bundle: Bundle, cache: Path) -> None:
    pixels = random_pixels(bundle, 3)
    runtime = open_sessions(bundle, "cpu", cache)
    [together] = runtime.run(pixels)
    singles = np.concatenate([runtime.run(pixel[np.newaxis])[0] for pixel in pixels])
    assert together.shape == (3, DIMENSION)
    assert together == pytest.approx(singles, rel=1e-5, abs=1e-5)
    assert together == pytest.approx(run_published(bundle, pixels), rel=1e-4, abs=1e-4)
    assert np.abs(together[0] - together[1]).max() > 0.1


def test_the_published_batch_is_fixed(bundle: Bundle) -> None:
    """Otherwise the test above would prove nothing."""
    session = open_session(bundle.path, "cpu")
    with pytest.raises(Exception, match="invalid dimensions"):
        session.run(None, {"data": random_pixels(bundle, 3)})


def test_weights_are_no_longer_inputs(bundle: Bundle, cache: Path) -> None:
    published = onnx.load(bundle.path)
    assert {entry.name for entry in published.graph.input} == {"data", "middle", "projection", "slope"}
    strip_initialiser_inputs(published)
    assert [entry.name for entry in published.graph.input] == ["data"]
    prepared, _ = prepare_graph(bundle, "cpu", cache)
    assert [entry.name for entry in onnx.load(prepared).graph.input] == ["data"]


@pytest.mark.parametrize(("height", "width"), [(32, 32), (160, 96), (640, 640), (32, 1024)])
def test_a_detector_takes_images_of_any_size(tmp_path: Path, cache: Path, height: int, width: int) -> None:
    runtime = open_sessions(build_detector(tmp_path), "cpu", cache)
    [scores] = runtime.run(np.zeros((1, 3, height, width), np.float32), ["cls_16"])
    assert scores.shape == (1, height * width // 256, 1)


def build_with_reshape(folder: Path, shape: list[int]) -> Bundle:
    """A recogniser whose batch of one is written into a Reshape, as exporters like to do."""
    weights = [
        numpy_helper.from_array(np.array(shape), "shape"),
        tensor("projection", np.random.default_rng(1).normal(size=(3 * 8 * 8, DIMENSION)) / 500),
    ]
    nodes = [
        helper.make_node("AveragePool", ["data"], ["grid"], kernel_shape=[14, 14], strides=[14, 14]),
        helper.make_node("Reshape", ["grid", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "projection"], ["embedding"]),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = save_network(
        folder / "tiny.onnx", nodes, [("data", [1, 3, 112, 112])], [("embedding", [1, DIMENSION])], weights
    )
    contract = Contract(
        name="reshaped",
        kind="recogniser",
        input_size=(112, 112),
        colour_order="rgb",
        template=ARCFACE_TEMPLATE,
        dimension=DIMENSION,
    )
    return save_bundle(contract, path, folder)


def build_with_flatten_to_one_row(folder: Path) -> Bundle:
    """A recogniser that ends in a Reshape to one row, whatever came in."""
    bundle = build_recogniser(folder)
    network = onnx.load(bundle.path)
    flatten = next(node for node in network.graph.node if node.op_type == "Flatten")
    network.graph.node.remove(flatten)
    network.graph.initializer.append(numpy_helper.from_array(np.array([1, -1]), "one_row"))
    network.graph.node.append(helper.make_node("Reshape", ["bent", "one_row"], ["embedding"]))
    onnx.save(network, bundle.path)
    return save_bundle(bundle.contract, bundle.path, folder)


def assert_runs_with_a_fixed_batch(bundle: Bundle, cache: Path) -> None:
    _, report = prepare_graph(bundle, "cpu", cache)
    assert report["dynamic_batch"] is False
    pixels = random_pixels(bundle, 1)
    [found] = open_sessions(bundle, "cpu", cache).run(pixels)
    assert found == pytest.approx(run_published(bundle, pixels), rel=1e-4, abs=1e-4)


def test_a_graph_that_insists_on_one_image_keeps_its_shapes(tmp_path: Path, cache: Path) -> None:
    assert_runs_with_a_fixed_batch(build_with_reshape(tmp_path, [1, 192]), cache)


def test_a_graph_that_ends_in_one_row_keeps_its_shapes(tmp_path: Path, cache: Path) -> None:
    assert_runs_with_a_fixed_batch(build_with_flatten_to_one_row(tmp_path), cache)


def test_a_network_of_infinities_is_refused(tmp_path: Path, cache: Path) -> None:
    bundle = build_recogniser(tmp_path)
    network = onnx.load(bundle.path)
    for weight in network.graph.initializer:
        if weight.name == "projection":
            weight.CopyFrom(tensor("projection", np.full((DIMENSION, 3, 8, 8), np.inf)))
    onnx.save(network, bundle.path)
    broken = save_bundle(bundle.contract, bundle.path, tmp_path)
    with pytest.raises(BundleRefused, match="not finite"):
        open_sessions(broken, "cpu", cache)


# What does not fit.


def test_a_detector_with_other_outputs_is_refused(data: Path, cache: Path, tmp_path: Path) -> None:
    bundle = load_bundle(data / "models" / "detector")
    network = onnx.load(bundle.path)
    for node in network.graph.node:
        node.output[:] = ["kps_9" if name == "kps_8" else name for name in node.output]
    for output in network.graph.output:
        output.name = "kps_9" if output.name == "kps_8" else output.name
    onnx.save(network, tmp_path / "other.onnx")
    other = save_bundle(bundle.contract, tmp_path / "other.onnx", tmp_path)
    with pytest.raises(BundleRefused, match="kps_8"):
        open_sessions(other, "cpu", cache)


def test_a_batch_size_is_found_on_any_device(bundle: Bundle, cache: Path) -> None:
    prepared, report = prepare_graph(bundle, "cpu", cache)
    assert report["batch_size"] == 1
    assert find_batch_size(prepared.read_bytes(), bundle, "cpu") in (1, 2, 4, 8, 16, 32)
