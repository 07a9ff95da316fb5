"""The layers that several backbones share."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from sameface.training.errors import RecipeRefused


def plan_stages(
    widths: Sequence[int], depths: Sequence[int], inputs: int | None = None
) -> list[tuple[int, int, int]]:
    """(input channels, output channels, blocks) of each stage; `inputs` of the first default to its width."""
    whole = all(isinstance(number, int) and number > 0 for number in (*widths, *depths))
    if not whole or not widths or len(widths) != len(depths):
        raise RecipeRefused(f"every stage needs a width and a depth of at least 1, not {widths} and {depths}")
    return list(zip((inputs or widths[0], *widths[:-1]), widths, depths, strict=True))


def convolve3x3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """A 3x3 convolution without bias that keeps the size, or halves it at stride 2."""
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)


def project(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The shortcut of a residual block: the identity, or a 1x1 convolution where the block changes the shape.

    The stride is taken by a pooling of one pixel, not by the convolution: the gradient of a strided 1x1
    convolution with few channels corrupts memory in channels_last (torch 2.13.0 with oneDNN 3.12, below 16
    input channels on AVX-512 and below 8 on AVX2). Convolution and norm keep the names "0" and "1" that
    checkpoints of 0.1.0 have.
    """
    if inputs == outputs and stride == 1:
        return nn.Identity()
    skip: list[tuple[str, nn.Module]] = [("stride", nn.AvgPool2d(1, stride))] if stride > 1 else []
    convolution, norm = nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
    return nn.Sequential(OrderedDict([*skip, ("0", convolution), ("1", norm)]))


def embed(size: int, dimension: int) -> nn.Sequential:
    """From `size` values of the last maps to an embedding whose coordinates have mean 0 over the faces."""
    return nn.Sequential(nn.Flatten(), nn.Linear(size, dimension, bias=False), nn.BatchNorm1d(dimension))


def initialise(modules: Iterable[nn.Module]) -> None:
    """Draw the weights of convolutions and linear layers from He's normal distribution (arXiv:1502.01852).

    Its variance, 2 / fan-in, keeps the scale of activations through a rectifier. Batch norms keep torch's
    initial identity, PReLU its slope of 0.25.
    """
    for module in modules:
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")


class Residual(nn.Module):
    """The sum of a branch and a shortcut, both applied to the input."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut = shortcut or nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        outcome: Tensor = self.branch(images) + self.shortcut(images)
        return outcome
