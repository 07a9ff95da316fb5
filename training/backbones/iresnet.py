"""IResNet: the improved residual networks of ArcFace, arXiv:1801.07698."""

from collections.abc import Sequence

from torch import Tensor, nn

from sameface.training.backbones.layers import Residual, convolve3x3, embed, initialise, plan_stages, project
from sameface.training.data.crop import CROP_SIDE
from sameface.training.errors import RecipeRefused


class IResNet(nn.Module):
    """A stem at full size, four stages that each halve it, and the head BN - dropout - FC - BN."""

    def __init__(
        self,
        depths: Sequence[int],
        dimension: int,
        *,
        widths: Sequence[int] = (64, 128, 256, 512),
        dropout: float = 0.4,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise RecipeRefused(f"dropout is at least 0 and below 1, not {dropout}")
        stages = plan_stages(widths, depths)
        self.stem = nn.Sequential(convolve3x3(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.PReLU(widths[0]))
        blocks: list[nn.Module] = []
        for inputs, outputs, depth in stages:
            blocks.append(build_block(inputs, outputs, stride=2))
            blocks += [build_block(outputs, outputs, stride=1) for _ in range(depth - 1)]
        self.blocks = nn.Sequential(*blocks)
        side = CROP_SIDE // 2 ** len(depths)
        self.embed = nn.Sequential(
            nn.BatchNorm2d(widths[-1]), nn.Dropout(dropout), *embed(widths[-1] * side * side, dimension)
        )
        # All coordinates should weigh the same, so the last batch norm learns no scale.
        self.embed[-1].weight.requires_grad_(False)
        initialise(self.modules())

    def forward(self, crops: Tensor) -> Tensor:
        """(batch, 3, 112, 112) -> (batch, dimension)."""
        embeddings: Tensor = self.embed(self.blocks(self.stem(crops)))
        return embeddings


def build_block(inputs: int, outputs: int, stride: int) -> Residual:
    """BN - conv - BN - PReLU - conv - BN, with the stride in the second convolution."""
    branch = nn.Sequential(
        nn.BatchNorm2d(inputs),
        convolve3x3(inputs, outputs),
        nn.BatchNorm2d(outputs),
        nn.PReLU(outputs),
        convolve3x3(outputs, outputs, stride),
        nn.BatchNorm2d(outputs),
    )
    return Residual(branch, project(inputs, outputs, stride))
