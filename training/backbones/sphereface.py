"""The convolutional networks of SphereFace, arXiv:1704.08063, table 2."""

from collections.abc import Sequence

from torch import Tensor, nn

from sameface.training.backbones.layers import Residual, convolve3x3, plan_stages
from sameface.training.data.crop import CROP_SIDE


class SphereFaceNet(nn.Module):
    """Four stages, each a halving convolution and `depths` residual units; PReLU, no batch norm.

    The paper's crops are 112x96, ours 112x112, so the last map is 7x7 instead of 7x6. The weights start as in
    the authors' definition: uniform with variance 1 / fan-in in layers that change the shape, normal with
    deviation 0.01 inside the units, which makes each unit nearly the identity.
    """

    def __init__(
        self, depths: Sequence[int], dimension: int, *, widths: Sequence[int] = (64, 128, 256, 512)
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        for inputs, outputs, depth in plan_stages(widths, depths, inputs=3):
            stages += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.PReLU(outputs)]
            stages += [Residual(build_unit(outputs)) for _ in range(depth)]
        self.stages = nn.Sequential(*stages)
        side = CROP_SIDE // 2 ** len(depths)
        self.embed = nn.Sequential(nn.Flatten(), nn.Linear(widths[-1] * side * side, dimension))
        self.apply(initialise_as_published)

    def forward(self, crops: Tensor) -> Tensor:
        """(batch, 3, 112, 112) -> (batch, dimension)."""
        embeddings: Tensor = self.embed(self.stages(crops))
        return embeddings


def build_unit(width: int) -> nn.Sequential:
    """The branch of a residual unit; its last PReLU is applied before the sum."""
    return nn.Sequential(
        convolve3x3(width, width), nn.PReLU(width), convolve3x3(width, width), nn.PReLU(width)
    )


def initialise_as_published(module: nn.Module) -> None:
    """Caffe's `xavier` for layers with a bias, `gaussian` with deviation 0.01 for layers without."""
    if not isinstance(module, nn.Conv2d | nn.Linear):
        return
    if module.bias is None:
        nn.init.normal_(module.weight, std=0.01)
    else:
        nn.init.kaiming_uniform_(module.weight, nonlinearity="linear")
        nn.init.zeros_(module.bias)
