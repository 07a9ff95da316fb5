"""Exports a checkpoint as a bundle: ONNX that is checked against torch, a contract and a model card."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from sameface.model.bundles.bundle import Bundle, load_bundle, save_bundle
from sameface.model.bundles.contract import Contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE, MODELS
from sameface.model.errors import BundleRefused
from sameface.model.runtime.session_pool import open_sessions
from sameface.training.backbones.by_name import build_backbone
from sameface.training.backbones.cost import measure_cost
from sameface.training.data.crop import CROP_SIDE, MEAN, STD, to_input
from sameface.training.errors import CheckpointRefused
from sameface.training.export.bundle_folder import staged, variant_folder
from sameface.training.export.model_card import CARD, write_card
from sameface.training.export.variants import VARIANTS, Trial, quietly, record_accuracy, try_bundle
from sameface.training.loop.checkpoint import load_checkpoint

OPSET = 17
LEAST_COSINE = 0.99999  # between the embeddings of one crop by torch and by ONNX Runtime
BATCHES = (8, 1)  # two sizes, because a batch axis that is fixed by mistake works for one


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained backbone in evaluation mode, and the checkpoint that it is from."""

    backbone: nn.Module
    state: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the recipe."""
        return str(self.state["recipe"]["name"])


def read_trained(path: Path) -> Trained:
    """Read the backbone of a checkpoint, with the moving average of its weights if there is one."""
    state = load_checkpoint(path, {})
    try:
        architecture = state["architecture"]
        name, dimension = architecture["backbone"], architecture["dimension"]
        backbone = build_backbone(name, dimension, **architecture["options"])
        backbone.load_state_dict(state["average"] or state["backbone"])
        trained = Trained(backbone.eval(), state)
        _ = trained.name, state["data"], state["step"], state["seen"], state["accuracy"]
    except KeyError as error:
        raise CheckpointRefused(f"{path} lacks {error}: it is no checkpoint of a training run.") from error
    except RuntimeError as error:
        raise CheckpointRefused(f"{path} has weights that do not fit its backbone.") from error
    return trained


def describe_contract(trained: Trained, name: str, licence: str) -> Contract:
    """The contract of the bundle: the network's input and output, and how it was trained."""
    state, published = trained.state, {model.contract.name for model in MODELS.values()}
    if name in published:
        raise BundleRefused(f"{name} is the name of a published network; choose another.")
    told = {key: state[key] for key in ("architecture", "data", "step", "seen", "accuracy")}
    return Contract(
        name=name,
        kind="recogniser",
        input_size=(CROP_SIDE, CROP_SIDE),
        colour_order="rgb",
        mean=(MEAN,) * 3,
        std=(STD,) * 3,
        template=ARCFACE_TEMPLATE,
        dimension=state["architecture"]["dimension"],
        licence=licence,
        source=f"sameface export of recipe {trained.name}, step {state['step']}",
        recipe={**state["recipe"], "trained": {**told, "averaged": state["average"] is not None}},
    )


def fold_layers(backbone: nn.Module) -> nn.Module:
    """A copy of the backbone in which `fold_pair` has been applied to all neighbouring layers."""
    folded = copy.deepcopy(backbone)
    for chain in folded.modules():
        if isinstance(chain, nn.Sequential):
            for place in range(len(chain) - 1):
                chain[place], chain[place + 1] = fold_pair(chain[place], chain[place + 1])
    return folded


def fold_pair(first: nn.Module, second: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Fold a batch norm into the convolution or linear layer before it, or a one-pixel pooling into the
    stride of the convolution after it; other pairs are returned unchanged.

    A norm before a convolution (IResNet) stays: the convolution pads the output of the norm with zeros, which
    is not the same as padding the input of the norm.
    """
    if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
        return fuse_conv_bn_eval(first, second), nn.Identity()
    if isinstance(first, nn.Linear) and isinstance(second, nn.BatchNorm1d):
        return fuse_linear_bn_eval(first, second), nn.Identity()
    if isinstance(first, nn.AvgPool2d) and first.kernel_size == 1 and isinstance(second, nn.Conv2d):
        second.stride = (first.stride,) * 2 if isinstance(first.stride, int) else first.stride
        return nn.Identity(), second
    return first, second


def write_onnx(backbone: nn.Module, path: Path) -> None:
    """Write the network as one ONNX file, with a batch axis of any size."""
    example = torch.zeros(2, 3, CROP_SIDE, CROP_SIDE)
    with quietly():
        torch.onnx.export(
            fold_layers(backbone),
            (example,),
            path,
            dynamo=False,  # the new exporter needs onnxscript, and exports plain layers alike
            opset_version=OPSET,
            input_names=["crops"],
            output_names=["embeddings"],
            dynamic_axes={"crops": {0: "batch"}, "embeddings": {0: "batch"}},
        )
    network = onnx.load(path)
    copy_shared_weights(network)
    onnx.checker.check_model(network)
    onnx.save(network, path)


def copy_shared_weights(network: onnx.ModelProto) -> None:
    """Copy weights that the exporter shares through Identity nodes, so that all are initializers again."""
    weights = {weight.name: weight for weight in network.graph.initializer}
    for node in list(network.graph.node):
        if node.op_type == "Identity" and node.input[0] in weights:
            own = network.graph.initializer.add()
            own.CopyFrom(weights[node.input[0]])
            own.name = node.output[0]
            weights[own.name] = own
            network.graph.node.remove(node)


def measure_parity(backbone: nn.Module, bundle: Bundle, cache: Path) -> dict[str, Any]:
    """The difference of the bundle, opened as by the server, from the trained backbone on random crops."""
    sessions = open_sessions(bundle, "cpu", cache)
    random = np.random.default_rng(0)
    differences, cosines = [], []
    for size in BATCHES:
        crops = random.integers(0, 256, (size, CROP_SIDE, CROP_SIDE, 3), np.uint8)
        with torch.inference_mode():
            pixels = to_input(torch.from_numpy(crops).permute(0, 3, 1, 2))
            expected = backbone(pixels).double().numpy()
        found = sessions.run(bundle.preprocess(crops))[0].astype(np.float64)
        lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
        differences.append(np.abs(expected - found).max())
        cosines.append(((expected * found).sum(1) / lengths).min())
    least = float(min(cosines))
    if not least >= LEAST_COSINE:  # also if it is NaN
        raise BundleRefused(f"ONNX Runtime and torch do not agree: cosine {least:.6f} on the same crop.")
    versions = {"opset": OPSET, "torch": torch.__version__, "onnxruntime": onnxruntime.__version__}
    return {
        "max_difference": float(max(differences)),
        "least_cosine": least,
        "crops": sum(BATCHES),
        **versions,
    }


def finish_bundle(bundle: Bundle, parity: dict[str, Any], trained: Trained) -> None:
    """Add the measurements in `parity` to the contract, and write the model card."""
    measured = parity.get("measured")
    contract = replace(
        bundle.contract,
        parity={**parity, "size_bytes": bundle.path.stat().st_size},
        published_threshold=round(measured["threshold"], 6) if measured else None,
    )
    done = save_bundle(contract, bundle.path, bundle.folder)
    (bundle.folder / CARD).write_text(write_card(done, measure_cost(trained.backbone)), "utf-8")


def export_network(trained: Trained, contract: Contract, folder: Path, trial: Trial | None = None) -> Bundle:
    """Write the float32 bundle; refused if its embeddings differ from those of the trained backbone."""
    with staged(folder) as (fresh, cache):
        file = fresh / f"{contract.name}.onnx"
        write_onnx(trained.backbone, file)
        draft = save_bundle(contract, file, fresh)
        parity = measure_parity(trained.backbone, draft, cache)
        if trial:
            parity["measured"] = record_accuracy(try_bundle(draft, trial.pairs, cache))
        finish_bundle(draft, parity, trained)
    return load_bundle(folder)


def export_variant(kind: str, exported: Bundle, trained: Trained, trial: Trial) -> Bundle:
    """Write a smaller bundle beside the float32 one; refused if it loses more than `trial.max_loss`."""
    name, full = f"{exported.contract.name}-{kind}", (exported.contract.parity or {})["measured"]
    folder = variant_folder(exported.folder, kind)
    with staged(folder) as (fresh, cache):
        file = fresh / f"{name}.onnx"
        VARIANTS[kind](exported, file, trial)
        draft = save_bundle(replace(exported.contract, name=name), file, fresh)
        measured = try_bundle(draft, trial.pairs, cache)
        loss = full["accuracy"] - measured.accuracy
        if not loss <= trial.max_loss + 1e-9:  # the difference of two floats is seldom exact
            lost = f"accuracy falls from {full['accuracy']:.4f} to {measured.accuracy:.4f}"
            raise BundleRefused(f"{lost}, by more than {trial.max_loss:g}.")
        compared = {"variant": kind, "float32_accuracy": full["accuracy"], "max_loss": trial.max_loss}
        compared["onnxruntime"] = onnxruntime.__version__
        finish_bundle(draft, {**compared, "measured": record_accuracy(measured)}, trained)
    return load_bundle(folder)
