"""Rewrites ONNX graphs without changing what they compute."""

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper


def strip_initialiser_inputs(network: ModelProto) -> None:
    """Remove weights from the graph's inputs, where they could be overridden and no optimiser folds them."""
    weights = {weight.name for weight in network.graph.initializer}
    inputs = [entry for entry in network.graph.input if entry.name not in weights]
    del network.graph.input[:]
    network.graph.input.extend(inputs)


def free_shapes(network: ModelProto, axes: dict[int, str]) -> None:
    """Make the input's `axes` dynamic under these names, and drop every shape that was inferred from them."""
    del network.graph.value_info[:]
    for axis, name in axes.items():
        network.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    for output in network.graph.output:
        for axis, dimension in enumerate(output.type.tensor_type.shape.dim):
            dimension.dim_param = f"{output.name}_{axis}"


def has_prelu(network: ModelProto) -> bool:
    """Whether the graph has a PRelu node, which `split_prelu` would rewrite."""
    return any(node.op_type == "PRelu" for node in network.graph.node)


def split_prelu(network: ModelProto) -> None:
    """Rewrite PRelu(x) as x + (1 - slope) Relu(-x): operators that runtimes fuse into convolutions."""
    graph = network.graph
    weights = {weight.name: weight for weight in graph.initializer}
    nodes = []
    for node in graph.node:
        if node.op_type != "PRelu" or node.input[1] not in weights:
            nodes.append(node)
            continue
        (x, slope), y = node.input, node.output[0]
        bend = 1 - numpy_helper.to_array(weights[slope])
        minus = np.full_like(bend, -1)  # per channel, as `bend`: Neg would not be fused
        graph.initializer.append(numpy_helper.from_array(bend, f"{y}_bend"))
        graph.initializer.append(numpy_helper.from_array(minus, f"{y}_minus"))
        nodes += [
            helper.make_node("Mul", [x, f"{y}_minus"], [f"{y}_negated"]),
            helper.make_node("Relu", [f"{y}_negated"], [f"{y}_below"]),
            helper.make_node("Mul", [f"{y}_below", f"{y}_bend"], [f"{y}_lift"]),
            helper.make_node("Add", [x, f"{y}_lift"], [y]),
        ]
    del graph.node[:]
    graph.node.extend(nodes)


def has_quantizers(network: ModelProto) -> bool:
    """Whether the graph rounds to eight bits, where engines differ by a step of rounding."""
    return any(node.op_type == "QuantizeLinear" for node in network.graph.node)


def to_fp16(network: bytes) -> bytes:
    """The graph with weights and arithmetic in half precision; input and output stay float32.

    A CPU without half-precision arithmetic computes in float32: there the file is smaller, but not faster.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16  # slow, so only here

    halved = convert_float_to_float16(onnx.load_from_string(network), keep_io_types=True)
    return bytes(halved.SerializeToString())


def identity_graph() -> bytes:
    """A network of one Identity node, to test whether an execution provider works."""
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", value[:1], value[1:])
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(network.SerializeToString())
