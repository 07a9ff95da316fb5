"""MobileFaceNet, arXiv:1804.07573, table 1."""

from torch import Tensor, nn

from sameface.training.backbones.layers import Residual, embed, initialise

# Expansion, output channels, number of blocks, stride of the first block.
BOTTLENECKS = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))
LAST_SIDE = 7


class MobileFaceNet(nn.Module):
    """Inverted bottlenecks of depthwise convolutions, and a depthwise convolution over the whole last map.

    The paper's last 1x1 convolution is a linear layer here, which is the same on a 1x1 map.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [*activated(3, 64, 3, stride=2), *activated(64, 64, 3, groups=64)]
        inputs = 64
        for expansion, outputs, depth, stride in BOTTLENECKS:
            layers.append(build_bottleneck(inputs, outputs, expansion, stride))
            layers += [build_bottleneck(outputs, outputs, expansion, 1) for _ in range(depth - 1)]
            inputs = outputs
        layers += activated(inputs, 512, 1)
        self.layers = nn.Sequential(*layers)
        self.weigh_places = nn.Sequential(
            nn.Conv2d(512, 512, LAST_SIDE, groups=512, bias=False), nn.BatchNorm2d(512)
        )
        self.embed = embed(512, dimension)
        initialise(self.modules())

    def forward(self, crops: Tensor) -> Tensor:
        """(batch, 3, 112, 112) -> (batch, dimension)."""
        embeddings: Tensor = self.embed(self.weigh_places(self.layers(crops)))
        return embeddings


def activated(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution with its batch norm and PReLU."""
    convolution = nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.PReLU(outputs))


def build_bottleneck(inputs: int, outputs: int, expansion: int, stride: int) -> nn.Module:
    """1x1 expansion, 3x3 depthwise, 1x1 projection without activation; a shortcut where shapes agree."""
    width = expansion * inputs
    branch = nn.Sequential(
        *activated(inputs, width, 1),
        *activated(width, width, 3, stride, groups=width),
        nn.Conv2d(width, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
    )
    return Residual(branch) if stride == 1 and inputs == outputs else branch
