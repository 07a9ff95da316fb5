"""Which layers stay exact: those whose rounding turns embeddings most, until the others turn them little."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused
from sameface.model.faces import Floats, Pixels
from sameface.model.observer import Progress
from sameface.model.photo.embed import scale_rows
from sameface.model.runtime import openvino
from sameface.model.runtime.session import open_session
from sameface.training.export.fold_graph import fold_graph
from sameface.training.export.int8_graph import equalise, measure_corrections, measure_ranges, quantise
from sameface.training.export.int8_layers import find_layers

CORRECTED_BY = 64  # crops whose errors set the corrections of biases
RANKED_BY = 24  # crops on which each layer is rounded alone
TRIED_BY = 64  # crops on which the rounded graph is compared


@dataclass(frozen=True, slots=True)
class Rounded:
    """A graph of eight bits, how many layers it has, and which of them stayed exact."""

    network: ModelProto
    layers: int
    exact: tuple[str, ...]


def round_network(bundle: Bundle, crops: Pixels, min_cosine: float, progress: Progress) -> Rounded:
    """The bundle's graph in eight bits, with as few exact layers as keep a mean cosine of `min_cosine`."""
    network = fold_graph(bundle)
    inputs = [bundle.preprocess(crop[np.newaxis]) for crop in crops]
    layers = [layer.output for layer in find_layers(network)]
    if not layers:
        raise BundleRefused(
            f"{bundle.contract.name} has no convolution or matrix product with constant float32 weights, so"
            " eight bits would change nothing."
        )
    exact_rows = embed(network, inputs[:TRIED_BY])
    progress("measuring ranges", 0, len(layers))
    ranges = measure_ranges(network, inputs)
    equalise(network, ranges)
    corrections = measure_corrections(network, ranges, inputs[:CORRECTED_BY])

    def rounding(kept: Collection[str], count: int) -> tuple[ModelProto, float]:
        rounded = quantise(network, ranges, kept, corrections)
        rows = embed(rounded, inputs[:count])
        return rounded, float(np.einsum("ij,ij->i", rows, exact_rows[:count]).mean())

    rounded, cosine = rounding((), TRIED_BY)
    ranked: list[str] = []
    kept = 0
    while not cosine >= min_cosine:  # also if it is NaN
        if not ranked:
            alone = []
            for layer in layers:
                alone.append(rounding([other for other in layers if other != layer], RANKED_BY)[1])
                progress("rounding each layer alone", len(alone), len(layers))
            ranked = [layers[place] for place in np.argsort(alone)]
        kept += max(1, kept // 2)
        if kept > len(layers) // 2:
            raise BundleRefused(
                f"{bundle.contract.name} loses too much in eight bits: with the worst half of its layers"
                f" exact, the mean cosine is {cosine:.4f}, and {min_cosine:g} is asked for."
            )
        rounded, cosine = rounding(ranked[:kept], TRIED_BY)
    return Rounded(rounded, len(layers), tuple(ranked[:kept]))


def embed(network: ModelProto, inputs: list[Floats]) -> Floats:
    """The unit embeddings (inputs, dimension) of a graph, on the engine that runs eight bits best."""
    engine = "openvino" if openvino.find_version() else "onnxruntime"
    session = open_session(bytes(network.SerializeToString()), "cpu", engine)
    rows = [session.run(None, {session.input_name: pixels})[0] for pixels in inputs]
    return scale_rows(np.concatenate(rows))[0]
