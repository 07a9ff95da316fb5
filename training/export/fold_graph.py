"""A recogniser's graph made ready for eight bits: newer operators, and everything folded into the weights."""

import tempfile
from pathlib import Path

import onnx
import onnxruntime
from onnx import ModelProto, version_converter

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused
from sameface.model.runtime import graph_rewrites as graph

OPSET = 13  # the first in which a scale per channel exists


def fold_graph(bundle: Bundle) -> ModelProto:
    """The bundle's graph of opset 13 or up, its batch size free, batch norms and constants folded."""
    network = onnx.load(bundle.path)
    if graph.has_quantizers(network):
        raise BundleRefused(f"{bundle.contract.name} is of eight bits already.")
    graph.strip_initialiser_inputs(network)
    graph.free_shapes(network, {0: "batch"})
    try:
        if find_opset(network) < OPSET:
            network = version_converter.convert_version(network, OPSET)
        folded = optimise(network)
    except Exception as error:  # onnx and ONNX Runtime raise their own types
        raise BundleRefused(f"{bundle.path} cannot be folded to opset {OPSET}: {error}") from error
    return folded


def find_opset(network: ModelProto) -> int:
    """The version of the standard operators that the graph uses."""
    return max((used.version for used in network.opset_import if used.domain in ("", "ai.onnx")), default=0)


def optimise(network: ModelProto) -> ModelProto:
    """The graph after ONNX Runtime's basic optimisations, which fold and stay within standard operators."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "folded.onnx"
        options.optimized_model_filepath = str(target)
        onnxruntime.InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])
        folded = onnx.load(target)
    used = {node.domain for node in folded.graph.node} | {""}
    kept = [each for each in folded.opset_import if each.domain in used]
    del folded.opset_import[:]
    folded.opset_import.extend(kept)
    return folded
