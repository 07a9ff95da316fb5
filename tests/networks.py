"""Tiny networks that really detect and recognise the faces that `tests.pictures` draws."""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sameface.model.bundles.bundle import Bundle, save_bundle
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Floats
from sameface.model.runtime.session import open_session

FACE_SIDE = 48  # pixels of a face that stride 16 finds: 3 x 3 green cells
SPECK_SIDE = 12  # pixels of a face that stride 8 finds: one blue cell, too small to compare
DIMENSION = 32


def tensor(name: str, values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, np.float32), name)


def save_network(
    path: Path, nodes, inputs, outputs, weights, *, list_weights_as_inputs: bool = False
) -> Path:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    if list_weights_as_inputs:
        infos += [
            helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
            for weight in weights
        ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
    graph = helper.make_graph(nodes, "tiny", infos, results, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def build_detector(folder: Path) -> Bundle:
    """YuNet's inputs and outputs; green 48-pixel squares are faces, blue 8-pixel ones are specks."""
    landmarks = (np.array(ARCFACE_TEMPLATE) / 112 - 0.5) * (FACE_SIDE / 16) + 0.5
    sides = {8: SPECK_SIDE, 16: FACE_SIDE, 32: 32}
    channel = {8: 0, 16: 1, 32: 0}  # of BGR
    gain = {8: 1.0, 16: 1.0, 32: 0.0}
    nodes, weights, outputs = [], [], []
    for stride, side in sides.items():
        cells = (640 // stride) ** 2
        reach = 3 if stride == 16 else 1
        look = np.zeros((1, 3, reach, reach))
        look[0, channel[stride]] = gain[stride] / 255 / reach**2
        constants = {
            "bbox": [0.5, 0.5, math.log(side / stride), math.log(side / stride)],
            "kps": landmarks.reshape(-1) if stride == 16 else np.full(10, 0.5) + np.arange(10) / 20,
        }
        weights += [
            tensor(f"look_{stride}", look),
            numpy_helper.from_array(np.array([1, -1, 1]), f"flat_{stride}"),
        ]
        nodes += [
            helper.make_node(
                "AveragePool", ["input"], [f"pool_{stride}"], kernel_shape=[stride] * 2, strides=[stride] * 2
            ),
            helper.make_node(
                "Conv", [f"pool_{stride}", f"look_{stride}"], [f"map_{stride}"], pads=[reach // 2] * 4
            ),
            helper.make_node("Reshape", [f"map_{stride}", f"flat_{stride}"], [f"cls_{stride}"]),
            helper.make_node("Identity", [f"cls_{stride}"], [f"obj_{stride}"]),
        ]
        outputs += [(f"cls_{stride}", [1, cells, 1]), (f"obj_{stride}", [1, cells, 1])]
        for part, values in constants.items():
            weights += [
                tensor(f"{part}_values_{stride}", np.reshape(values, (1, 1, -1))),
                tensor(f"zero_{part}_{stride}", 0),
            ]
            nodes += [
                helper.make_node(
                    "Mul", [f"cls_{stride}", f"zero_{part}_{stride}"], [f"{part}_zeros_{stride}"]
                ),
                helper.make_node(
                    "Add", [f"{part}_zeros_{stride}", f"{part}_values_{stride}"], [f"{part}_{stride}"]
                ),
            ]
            outputs.append((f"{part}_{stride}", [1, cells, len(values)]))
    path = save_network(folder / "tiny.onnx", nodes, [("input", [1, 3, 640, 640])], outputs, weights)
    contract = Contract(name="tiny-detector", kind="detector", input_size=(640, 640), colour_order="bgr")
    return save_bundle(contract, path, folder)


def build_recogniser(
    folder: Path, *, name: str = "tiny-recogniser", threshold: float | None = 0.5, seed: int = 1
) -> Bundle:
    """Projects the red 8 x 8 pattern; as awkward as SFace: fixed batch, PRelu, weights as inputs."""
    random = np.random.default_rng(seed)
    projection = np.zeros((DIMENSION, 3, 8, 8))
    projection[:, 0] = random.normal(size=(DIMENSION, 8, 8)) / 500
    weights = [
        tensor("middle", 127.5),
        tensor("projection", projection),
        tensor("slope", random.uniform(0.8, 1.2, (DIMENSION, 1, 1))),
    ]
    nodes = [
        helper.make_node("Sub", ["data", "middle"], ["centred"]),
        helper.make_node("AveragePool", ["centred"], ["grid"], kernel_shape=[14, 14], strides=[14, 14]),
        helper.make_node("Conv", ["grid", "projection"], ["projected"]),
        helper.make_node("PRelu", ["projected", "slope"], ["bent"]),
        helper.make_node("Flatten", ["bent"], ["embedding"]),
    ]
    path = save_network(
        folder / "tiny.onnx",
        nodes,
        [("data", [1, 3, 112, 112])],
        [("embedding", [1, DIMENSION])],
        weights,
        list_weights_as_inputs=True,
    )
    contract = Contract(
        name=name,
        kind="recogniser",
        input_size=(112, 112),
        colour_order="rgb",
        template=ARCFACE_TEMPLATE,
        dimension=DIMENSION,
        published_threshold=threshold,
        licence="Apache-2.0",
        source="tests",
    )
    return save_bundle(contract, path, folder)


def random_pixels(bundle: Bundle, count: int, seed: int = 11) -> Floats:
    """What a bundle makes of crops of noise."""
    width, height = bundle.contract.input_size
    crops = np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), np.uint8)
    return bundle.preprocess(crops)


def run_published(bundle: Bundle, pixels: Floats) -> Floats:
    """What the published file answers, one image at a time."""
    session = open_session(bundle.path, "cpu")
    name = session.input_name
    return np.concatenate([session.run(None, {name: pixel[np.newaxis]})[0] for pixel in pixels])
