"""The layers of a graph that eight bits make faster, and their weights by name."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.helper import get_node_attr_value

from sameface.model.faces import Floats

BENDS = ("PRelu", "Relu", "LeakyRelu")  # f(s x) = s f(x) for every s > 0


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution or matrix product with constant weights, which its output's name identifies."""

    output: str
    activation: str
    weights: str
    bias: str | None
    axis: int  # of the weights' output channels
    depthwise: bool  # every channel has a filter of its own
    convolution: bool


class Weights:
    """The initializers of a graph as arrays, to be read and replaced by name."""

    def __init__(self, network: ModelProto) -> None:
        self.stored: dict[str, TensorProto] = {each.name: each for each in network.graph.initializer}
        self.uses = Counter(name for node in network.graph.node for name in node.input)

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def get(self, name: str) -> Floats:
        """The array called `name`."""
        return np.asarray(numpy_helper.to_array(self.stored[name]))

    def scale(self, name: str, factors: Floats) -> None:
        """Multiply the array called `name` by `factors`."""
        scaled = (self.get(name) * factors).astype(np.float32)
        self.stored[name].CopyFrom(numpy_helper.from_array(scaled, name))

    def is_float(self, name: str) -> bool:
        """Whether `name` is an initializer of float32."""
        return name in self.stored and self.stored[name].data_type == TensorProto.FLOAT


def find_layers(network: ModelProto) -> list[Layer]:
    """The layers in the order in which they run."""
    weights = Weights(network)
    found = (read_layer(node, weights) for node in network.graph.node)
    return [layer for layer in found if layer]


def read_layer(node: NodeProto, weights: Weights) -> Layer | None:
    """The layer of a node; None if it is another operator, or has weights that are not constant or shared."""
    if node.op_type not in ("Conv", "Gemm"):
        return None
    bias = node.input[2] if len(node.input) > 2 and node.input[2] else None
    constants = [node.input[1], *([bias] if bias else [])]
    if any(not weights.is_float(name) or weights.uses[name] > 1 for name in constants):
        return None
    convolution, axis, depthwise = node.op_type == "Conv", 0, False
    if convolution:
        shape = weights.get(node.input[1]).shape
        depthwise = shape[1] == 1 and read_attribute(node, "group", 1) == shape[0] > 1
    else:
        axis = 0 if read_attribute(node, "transB", 0) else 1
        if read_attribute(node, "alpha", 1.0) != 1 or read_attribute(node, "beta", 1.0) != 1:
            return None
    return Layer(node.output[0], node.input[0], node.input[1], bias, axis, depthwise, convolution)


def read_attribute(node: NodeProto, name: str, default: float) -> float:
    """A number among the attributes of a node."""
    there = any(each.name == name for each in node.attribute)
    return float(get_node_attr_value(node, name)) if there else default


def find_source(network: ModelProto, layer: Layer, layers: dict[str, Layer]) -> Layer | None:
    """The convolution whose output reaches `layer`, and nothing else, through no more than a bend."""
    makers = {output: node for node in network.graph.node for output in node.output}
    uses = Weights(network).uses
    outside = {output.name for output in network.graph.output}
    name = layer.activation
    while uses[name] == 1 and name not in outside:
        if name in layers:
            return layers[name] if layers[name].convolution else None
        node = makers.get(name)
        if node is None or node.op_type not in BENDS:
            return None
        name = node.input[0]
    return None
