"""Backbones by the names that recipes use."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from sameface.training.backbones.iresnet import IResNet
from sameface.training.backbones.mobilefacenet import MobileFaceNet
from sameface.training.backbones.residual import ResidualNet
from sameface.training.backbones.sphereface import SphereFaceNet
from sameface.training.by_name import Choice
from sameface.training.errors import RecipeRefused

# Each maps (batch, 3, 112, 112) to (batch, dimension), not normalised: loss and server do that.
BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "residual": ResidualNet,
    "mobilefacenet": MobileFaceNet,
    "sphereface20": partial(SphereFaceNet, (1, 2, 4, 1)),
    "sphereface36": partial(SphereFaceNet, (2, 4, 8, 2)),
    "sphereface64": partial(SphereFaceNet, (3, 8, 16, 3)),
    "iresnet18": partial(IResNet, (2, 2, 2, 2)),
    "iresnet34": partial(IResNet, (3, 4, 6, 3)),
    "iresnet50": partial(IResNet, (3, 4, 14, 3)),
    "iresnet100": partial(IResNet, (3, 13, 30, 3)),
}
BACKBONE = Choice("backbone.name", "backbone.options", BACKBONES)


def build_backbone(name: str, dimension: int = 512, **options: Any) -> nn.Module:
    """Build the backbone called `name`, with weights drawn from torch's global generator."""
    if not isinstance(dimension, int) or dimension < 1:
        raise RecipeRefused(f"backbone.dimension is at least 1, not {dimension!r}")
    return BACKBONE.build(name, (dimension,), options)
