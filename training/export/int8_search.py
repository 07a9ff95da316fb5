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


class Rounding:
    """An equalised graph that can be rounded but for some layers, and compared with its exact self."""

    def __init__(self, bundle: Bundle, crops: Pixels) -> None:
        self.network = fold_graph(bundle)
        self.layers = [layer.output for layer in find_layers(self.network)]
        if not self.layers:
            raise BundleRefused(
                f"{bundle.contract.name} has no convolution or matrix product with constant float32 weights,"
                " so eight bits would change nothing."
            )
        mixed = np.random.default_rng(0).permutation(len(crops))  # neighbours show one person
        self.inputs = [bundle.preprocess(crops[place][np.newaxis]) for place in mixed]
        self.exact = embed(self.network, self.inputs[:TRIED_BY])
        self.ranges = measure_ranges(self.network, self.inputs)
        equalise(self.network, self.ranges)
        self.corrections = measure_corrections(self.network, self.ranges, self.inputs[:CORRECTED_BY])

    def leave(self, exact: Collection[str], crops: int = TRIED_BY) -> tuple[ModelProto, float]:
        """The graph with all layers rounded but those in `exact`, and its mean cosine on some crops."""
        rounded = quantise(self.network, self.ranges, exact, self.corrections)
        rows = embed(rounded, self.inputs[:crops])
        return rounded, float(np.einsum("ij,ij->i", rows, self.exact[:crops]).mean())

    def rank(self, progress: Progress) -> list[str]:
        """The layers, those first that turn embeddings most if they alone are rounded."""
        cosines = []
        for layer in self.layers:
            others = [other for other in self.layers if other != layer]
            cosines.append(self.leave(others, RANKED_BY)[1])
            progress("rounding each layer alone", len(cosines), len(self.layers))
        return [self.layers[place] for place in np.argsort(cosines)]


def round_network(bundle: Bundle, crops: Pixels, min_cosine: float, progress: Progress) -> Rounded:
    """The bundle's graph in eight bits, with as few exact layers as keep a mean cosine of `min_cosine`."""
    rounding = Rounding(bundle, crops)
    network, cosine = rounding.leave(())
    ranked: list[str] = []
    kept = 0
    while not cosine >= min_cosine:  # also if it is NaN
        ranked = ranked or rounding.rank(progress)
        kept += max(1, kept // 2)
        if kept > len(ranked) // 2:
            raise BundleRefused(
                f"{bundle.contract.name} loses too much in eight bits: with up to half of its layers exact,"
                f" the mean cosine is {cosine:.4f}, and {min_cosine:g} is asked for."
            )
        network, cosine = rounding.leave(ranked[:kept])
    return Rounded(network, len(rounding.layers), tuple(ranked[:kept]))


def embed(network: ModelProto, inputs: list[Floats]) -> Floats:
    """The unit embeddings (inputs, dimension) of a graph, on the engine that runs eight bits best."""
    engine = "openvino" if openvino.find_version() else "onnxruntime"
    try:
        session = open_session(bytes(network.SerializeToString()), "cpu", engine)
        rows = [session.run(None, {session.input_name: pixels})[0] for pixels in inputs]
    except Exception as error:  # engines raise their own unexported types
        raise BundleRefused(f"The network cannot be rounded: {engine} does not run it: {error}") from error
    return scale_rows(np.concatenate(rows))[0]
