"""A small recogniser for tests of eight bits: three convolutions whose channels differ widely."""

from pathlib import Path

import numpy as np
from onnx import helper

from sameface.model.bundles.bundle import Bundle, save_bundle
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from tests.networks import save_network, tensor

CHANNELS = 16
DIMENSION = 32


def build_uneven(folder: Path, name: str = "uneven", spread: float = 3.0) -> Bundle:
    """Crops of 112 x 112 to 32 numbers; a channel is up to e**`spread` times as wide as another."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    widths = np.exp(random.uniform(0, spread, CHANNELS))
    weights = [
        tensor("middle", 127.5),
        tensor("first", random.normal(size=(CHANNELS, 3, 7, 7)) / 1000 * widths[:, None, None, None]),
        tensor("slope", random.uniform(0.1, 0.4, (CHANNELS, 1, 1))),
        tensor("each", random.normal(size=(CHANNELS, 1, 3, 3)) / widths[:, None, None, None]),
        tensor("each_bias", random.normal(size=CHANNELS)),
        tensor("last", random.normal(size=(DIMENSION, CHANNELS, 5, 5)) / 20),
    ]
    nodes = [
        helper.make_node("Sub", ["data", "middle"], ["centred"]),
        helper.make_node("Conv", ["centred", "first"], ["wide"], strides=[7, 7]),
        helper.make_node("PRelu", ["wide", "slope"], ["bent"]),
        helper.make_node("Conv", ["bent", "each", "each_bias"], ["filtered"], group=CHANNELS, strides=[3, 3]),
        helper.make_node("Relu", ["filtered"], ["positive"]),
        helper.make_node("Conv", ["positive", "last"], ["summed"]),
        helper.make_node("Flatten", ["summed"], ["embedding"]),
    ]
    inputs, outputs = [("data", [1, 3, 112, 112])], [("embedding", [1, DIMENSION])]
    path = save_network(folder / "uneven.onnx", nodes, inputs, outputs, weights, list_weights_as_inputs=True)
    contract = Contract(
        name=name,
        kind="recogniser",
        input_size=(112, 112),
        colour_order="rgb",
        template=ARCFACE_TEMPLATE,
        dimension=DIMENSION,
        published_threshold=0.4,
        licence="Apache-2.0",
    )
    return save_bundle(contract, path, folder)
