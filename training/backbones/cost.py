"""The parameters and multiply-accumulates of a backbone; run it for the table of docs/backbones.md."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sameface.training.backbones.by_name import BACKBONES, build_backbone
from sameface.training.data.crop import CROP_SIDE

CUSTOMARY_DIMENSION = 512
SMALL_DIMENSIONS = {"residual": 128, "mobilefacenet": 128}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one crop's forward pass."""

    parameters: int
    multiply_accumulates: int  # of convolutions and linear layers; the rest is negligible


def measure_cost(network: nn.Module, input_shape: tuple[int, ...] = (3, CROP_SIDE, CROP_SIDE)) -> Cost:
    """Count parameters, and multiply-accumulates in a forward pass on meta tensors that computes nothing."""
    ghost = deepcopy(network).to("meta").eval()  # a meta tensor has a shape and no values
    counts: list[int] = []

    def count(layer: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        places = output.numel() // output.shape[1]  # each weight is used once at every place of the output
        counts.append(places * layer.get_parameter("weight").numel())

    for layer in ghost.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    ghost(torch.empty(1, *input_shape, device="meta"))
    return Cost(sum(parameter.numel() for parameter in network.parameters()), sum(counts))


def write_table() -> str:
    """The cost of every backbone at its customary dimension, in Markdown."""
    lines = ["| backbone | dimension | million parameters | million MACs |", "|---|--:|--:|--:|"]
    for name in BACKBONES:
        dimension = SMALL_DIMENSIONS.get(name, CUSTOMARY_DIMENSION)
        with torch.device("meta"):
            cost = measure_cost(build_backbone(name, dimension))
        millions = f"{cost.parameters / 1e6:.2f} | {cost.multiply_accumulates / 1e6:,.0f}"
        lines.append(f"| `{name}` | {dimension} | {millions} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(write_table())
