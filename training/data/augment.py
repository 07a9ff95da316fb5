"""Random augmentation of crops, drawn independently for each crop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from sameface.training.data.crop import CROP_SIDE
from sameface.training.errors import RecipeRefused

LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in the brightness, ITU-R BT.601
SHORTEST_OCCLUSION = 0.1  # share of the crop's side


@dataclass(frozen=True, slots=True)
class Augmentation:
    """The probability of each change and its strength; a probability of 0 switches it off."""

    flip: float = 0.5
    shift: float = 0.5
    shift_pixels: int = 4
    colour: float = 0.5
    brightness: float = 0.3  # drawn from 1 - this to 1 + this, as a factor; the next two likewise
    contrast: float = 0.3
    saturation: float = 0.3
    low_resolution: float = 0.1
    coarsest_side: int = 20  # pixels of the crop at low resolution
    finest_side: int = 56
    occlusion: float = 0.1
    longest_occlusion: float = 0.5  # share of the crop's side

    def __post_init__(self) -> None:
        shares = ("flip", "shift", "colour", "brightness", "contrast", "saturation", "low_resolution")
        for field in (*shares, "occlusion", "longest_occlusion"):
            if not 0 <= getattr(self, field) <= 1:
                raise RecipeRefused(
                    f"augmentation.{field} lies between 0 and 1, not at {getattr(self, field)}"
                )
        if not 0 <= self.shift_pixels < CROP_SIDE:
            raise RecipeRefused(f"augmentation.shift_pixels is 0 to {CROP_SIDE - 1}, not {self.shift_pixels}")
        if not 1 <= self.coarsest_side <= self.finest_side <= CROP_SIDE:
            raise RecipeRefused(
                f"augmentation.coarsest_side is 1 to finest_side, and that at most {CROP_SIDE}"
            )

    def apply(self, crops: Tensor, generator: torch.Generator) -> Tensor:
        """Augment RGB crops, uint8 (batch, 3, 112, 112), without writing into them.

        All randomness comes from `generator`, which must be on the crops' device, so that a resumed run can
        draw the same changes.
        """
        for probability, change in self.changes():
            dice = torch.rand(len(crops), generator=generator, device=crops.device)
            chosen = (dice < probability).nonzero().squeeze(1)  # (chosen,)
            if len(chosen):
                crops = replace(crops, chosen, change(crops.index_select(0, chosen), generator))
        return crops

    def changes(self) -> list[tuple[float, Callable[[Tensor, torch.Generator], Tensor]]]:
        """Each change with its probability, in the order of application."""
        strengths = (self.brightness, self.contrast, self.saturation)
        sides = (self.coarsest_side, self.finest_side)
        return [
            (self.flip, lambda crops, _: crops.flip(-1)),
            (self.shift, lambda crops, generator: shift(crops, self.shift_pixels, generator)),
            (self.colour, lambda crops, generator: recolour(crops, strengths, generator)),
            (self.low_resolution, lambda crops, generator: coarsen(crops, sides, generator)),
            (self.occlusion, lambda crops, generator: occlude(crops, self.longest_occlusion, generator)),
        ]


def replace(crops: Tensor, chosen: Tensor, changed: Tensor) -> Tensor:
    """`crops` with `changed` at `chosen`; copying all crops twice is faster than writing into some."""
    source = torch.arange(len(crops), device=crops.device)
    source[chosen] = torch.arange(len(crops), len(crops) + len(changed), device=crops.device)
    return torch.cat((crops, changed)).index_select(0, source)


def shift(crops: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Move each crop by up to `pixels`; black fills the gap, as where a crop reaches past its photo."""
    count, _, height, width = crops.shape
    padded = functional.pad(crops, (pixels,) * 4)
    windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # (count, 3, down, across, height, width)
    moves = (2, count)
    down, across = torch.randint(2 * pixels + 1, moves, generator=generator, device=crops.device)
    return windows[torch.arange(count, device=crops.device), :, down, across]


def recolour(crops: Tensor, strengths: tuple[float, float, float], generator: torch.Generator) -> Tensor:
    """Change brightness, contrast and saturation by up to `strengths`.

    All three are linear in the colour, so together they are one matrix and one offset per crop.
    """
    device = crops.device
    spread = torch.rand(3, len(crops), 1, 1, generator=generator, device=device) * 2 - 1
    brightness, contrast, saturation = 1 + spread * torch.tensor(strengths, device=device).view(3, 1, 1, 1)
    colours = crops.flatten(2).float()  # (count, 3, pixels)
    luma = torch.tensor(LUMA, device=device)
    mean = (colours.mean(2) @ luma).view(-1, 1, 1)  # (count, 1, 1)
    saturate = saturation * torch.eye(3, device=device) + (1 - saturation) * luma  # (count, 3, 3)
    changed = torch.baddbmm(brightness * (1 - contrast) * mean, brightness * contrast * saturate, colours)
    return to_bytes(changed).view_as(crops)


def coarsen(crops: Tensor, sides: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Shrink each crop to a side drawn between the two `sides`, and enlarge it again."""
    coarsest, finest = sides
    size = (len(crops),)
    drawn = torch.randint(finest - coarsest + 1, size, generator=generator, device=crops.device)
    smear = smears(coarsest, finest, crops.device)[drawn].unsqueeze(1)  # (count, 1, 112, 112)
    return to_bytes(smear.mT @ crops.float() @ smear)


@cache
def smears(coarsest: int, finest: int, device: torch.device) -> Tensor:
    """Matrices (sides, 112, 112) that shrink a row of pixels to each side and enlarge it again.

    With matrices, crops of different sides are one batched product. Row i is the response to a single bright
    pixel i, since the change is linear.
    """
    pixels = torch.eye(CROP_SIDE, device=device).unsqueeze(0)  # (1, 112, 112)
    shrunk = [functional.adaptive_avg_pool1d(pixels, side) for side in range(coarsest, finest + 1)]
    return torch.cat([functional.interpolate(row, size=CROP_SIDE, mode="linear") for row in shrunk])


def occlude(crops: Tensor, longest: float, generator: torch.Generator) -> Tensor:
    """Hide a rectangle of each crop, its sides up to the share `longest`, behind noise or grey."""
    count, _, *size = crops.shape
    numbers = torch.rand(6, count, 1, generator=generator, device=crops.device)
    inside = []
    for length, (share, place) in zip(size, (numbers[0:2], numbers[2:4]), strict=True):
        extent = length * (SHORTEST_OCCLUSION + share * (longest - SHORTEST_OCCLUSION))
        start = place * (length - extent)
        steps = torch.arange(length, device=crops.device)
        inside.append((start <= steps) & (steps < start + extent))  # (count, length)
    hidden = inside[0].view(count, 1, -1, 1) & inside[1].view(count, 1, 1, -1)  # (count, 1, height, width)
    shape = (1, *crops.shape[1:])  # one noise for all crops, since drawing it is slow
    noise = torch.randint(256, shape, generator=generator, device=crops.device, dtype=torch.uint8)
    grey = (numbers[4] * 256).to(torch.uint8).view(count, 1, 1, 1)
    cover = torch.where(numbers[5].view(count, 1, 1, 1) < 0.5, noise, grey)
    return torch.where(hidden, cover, crops)


def to_bytes(values: Tensor) -> Tensor:
    """Round and clamp to uint8, overwriting `values`."""
    return values.round_().clamp_(0, 255).to(torch.uint8)
