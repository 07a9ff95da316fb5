"""A float32 graph to one of eight bits: ranges measured, channels equalised, rounded, biases corrected."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from sameface.model.faces import Floats
from sameface.model.runtime.session import open_session
from sameface.training.export.int8_layers import Layer, Weights, find_layers, find_source

WEIGHT_STEPS = 63  # seven bits: without VNNI, processors add two products in sixteen bits, which overflow
ACTIVATION_STEPS = 255
FLATTEST = 1e-3  # of the widest channel: no channel is stretched more


@dataclass(frozen=True, slots=True)
class Range:
    """The lowest and highest value of each channel of an activation."""

    low: Floats
    high: Floats

    def widen(self, values: Floats) -> "Range":
        """The range that includes `values` (batch, channels, ...) as well."""
        others = tuple(axis for axis in range(values.ndim) if axis != 1)
        return Range(np.minimum(self.low, values.min(others)), np.maximum(self.high, values.max(others)))

    def divide(self, scale: Floats) -> "Range":
        """The range of the activation divided by a scale per channel."""
        return Range(self.low / scale, self.high / scale)

    @property
    def reach(self) -> Floats:
        """The largest magnitude of each channel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def measure_ranges(network: ModelProto, inputs: Iterable[Floats]) -> dict[str, Range]:
    """The range of every layer's activation over the inputs."""
    names = list(dict.fromkeys(layer.activation for layer in find_layers(network)))
    ranges: dict[str, Range] = {}
    for values in run_inside(network, names, inputs):
        for name, value in zip(names, values, strict=True):
            empty = np.zeros(value.shape[1], np.float32)  # 0 has to be a value: convolutions pad with it
            ranges[name] = ranges.get(name, Range(empty, empty)).widen(value)
    return ranges


def run_inside(network: ModelProto, names: list[str], inputs: Iterable[Floats]) -> Iterable[list[Floats]]:
    """The tensors called `names` inside the graph, for each input."""
    opened = ModelProto()
    opened.CopyFrom(network)
    there = {entry.name for entry in (*opened.graph.output, *opened.graph.input)}
    for name in names:
        if name not in there:
            opened.graph.output.add().name = name
    session = open_session(opened.SerializeToString(), "cpu")
    asked = [name for name in names if name != session.input_name]
    for pixels in inputs:
        found = dict(zip(asked, session.run(asked, {session.input_name: pixels}), strict=True))
        yield [found.get(name, pixels) for name in names]


def equalise(network: ModelProto, ranges: dict[str, Range]) -> None:
    """Scale channels so that all of an activation need about the same range, without changing the output.

    One scale serves the whole activation, so a channel ten times wider leaves the others a tenth of the
    steps. Between two convolutions a channel may be divided in the first and multiplied in the second. A
    depthwise convolution takes any scale, because it has one of its own per channel; others get the square
    root of what activation and weights would want.
    """
    layers = {layer.output: layer for layer in find_layers(network)}
    for layer in layers.values():
        source = find_source(network, layer, layers)
        if source is None or not layer.convolution:
            continue
        weights = Weights(network)
        shape = weights.get(layer.weights).shape
        reach = lift(ranges[layer.activation].reach)
        if layer.depthwise:
            scale = reach
        elif shape[1] == len(reach):
            scale = np.sqrt(reach / lift(np.abs(weights.get(layer.weights)).max((0, *range(2, len(shape))))))
        else:
            continue  # a grouped convolution
        scale = (scale / scale.max()).astype(np.float32)
        columns = tuple(range(1, len(shape)))
        weights.scale(source.weights, np.expand_dims(1 / scale, columns))
        if source.bias:
            weights.scale(source.bias, 1 / scale)
        weights.scale(layer.weights, np.expand_dims(scale, columns if layer.depthwise else columns[:-1]))
        ranges[layer.activation] = ranges[layer.activation].divide(scale)


def lift(values: Floats) -> Floats:
    """The values, none of them below a thousandth of the largest."""
    return np.maximum(values, max(float(values.max()) * FLATTEST, 1e-12))


def quantise(
    network: ModelProto,
    ranges: Mapping[str, Range],
    exact: Collection[str] = (),
    corrections: Mapping[str, Floats] | None = None,
) -> ModelProto:
    """The graph with the weights and activations of all layers in eight bits, but for those in `exact`."""
    rounded = ModelProto()
    rounded.CopyFrom(network)
    layers = {layer.output: layer for layer in find_layers(rounded) if layer.output not in exact}
    weights, nodes, done = Weights(rounded), [], set()
    for node in rounded.graph.node:
        layer = layers.get(node.output[0])
        if layer:
            if layer.activation not in done:
                nodes += round_activation(rounded, layer.activation, ranges[layer.activation])
                done.add(layer.activation)
            nodes.append(round_weights(rounded, layer, weights.get(layer.weights)))
            node.input[0], node.input[1] = f"{layer.activation}_rounded", f"{layer.weights}_rounded"
            if corrections:
                correct_bias(rounded, node, layer, weights, corrections[layer.output])
        nodes.append(node)
    replace_nodes(rounded, nodes)
    return rounded


def round_activation(network: ModelProto, name: str, measured: Range) -> list[NodeProto]:
    """Nodes that round the activation `name` to 256 steps between its lowest and highest value."""
    low, high = float(measured.low.min()), float(measured.high.max())
    scale = np.float32(max(high - low, 1e-12) / ACTIVATION_STEPS)
    zero = np.uint8(np.clip(round(-low / float(scale)), 0, ACTIVATION_STEPS))
    store(network, f"{name}_scale", np.array(scale))
    store(network, f"{name}_zero", np.array(zero))
    steps = [f"{name}_scale", f"{name}_zero"]
    return [
        helper.make_node("QuantizeLinear", [name, *steps], [f"{name}_steps"]),
        helper.make_node("DequantizeLinear", [f"{name}_steps", *steps], [f"{name}_rounded"]),
    ]


def round_weights(network: ModelProto, layer: Layer, weights: Floats) -> NodeProto:
    """Store a layer's weights in seven bits, a scale per channel, and return the node that scales them."""
    name, others = layer.weights, tuple(axis for axis in range(weights.ndim) if axis != layer.axis)
    scale = np.maximum(np.abs(weights).max(others), 1e-12) / WEIGHT_STEPS
    steps = np.round(weights / np.expand_dims(scale, others)).astype(np.int8)
    store(network, f"{name}_steps", steps)
    store(network, f"{name}_scale", scale.astype(np.float32))
    store(network, f"{name}_zero", np.zeros(len(scale), np.int8))
    inputs = [f"{name}_steps", f"{name}_scale", f"{name}_zero"]
    return helper.make_node("DequantizeLinear", inputs, [f"{name}_rounded"], axis=layer.axis)


def correct_bias(
    network: ModelProto, node: NodeProto, layer: Layer, weights: Weights, correction: Floats
) -> None:
    """Add to a layer's bias what rounding takes from the mean of its output."""
    bias = weights.get(layer.bias) if layer.bias else np.zeros_like(correction)
    store(network, f"{layer.weights}_bias", (bias + correction).astype(np.float32))
    node.input[:] = [*node.input[:2], f"{layer.weights}_bias"]


def store(network: ModelProto, name: str, values: np.ndarray) -> None:
    """Add an initializer."""
    network.graph.initializer.append(numpy_helper.from_array(values, name))


def replace_nodes(network: ModelProto, nodes: list[NodeProto]) -> None:
    """Let the graph have these nodes, and only the initializers that they use."""
    used = {name for node in nodes for name in node.input}
    kept = [each for each in network.graph.initializer if each.name in used]
    for field, values in ((network.graph.node, nodes), (network.graph.initializer, kept)):
        copies = [type(value)() for value in values]
        for copy, value in zip(copies, values, strict=True):
            copy.CopyFrom(value)
        del field[:]
        field.extend(copies)


def measure_corrections(
    network: ModelProto, ranges: Mapping[str, Range], inputs: list[Floats]
) -> dict[str, Floats]:
    """For each layer the mean error, per channel, that its own rounding makes on exact activations."""
    layers = find_layers(network)
    rounded = quantise(network, ranges)
    beside = ModelProto()
    beside.CopyFrom(network)
    there = {each.name for each in network.graph.initializer}
    beside.graph.initializer.extend(each for each in rounded.graph.initializer if each.name not in there)
    outputs = {layer.output for layer in layers}
    for node in rounded.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            beside.graph.node.add().CopyFrom(node)
        elif node.output[0] in outputs:
            twin = beside.graph.node.add()
            twin.CopyFrom(node)
            twin.name, twin.output[0] = "", f"{node.output[0]}_twin"
    names = [name for layer in layers for name in (layer.output, f"{layer.output}_twin")]
    sums: dict[str, Floats] = {}
    for values in run_inside(beside, names, inputs):
        for layer, exact, found in zip(layers, values[::2], values[1::2], strict=True):
            others = tuple(axis for axis in range(exact.ndim) if axis != 1)
            error = (exact - found).mean(others) / len(inputs)
            sums[layer.output] = sums.get(layer.output, np.float32(0)) + error
    return sums
