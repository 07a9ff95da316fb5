"""The crops that training works on: aligned squares of 112 pixels, and their scaling to network input."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # preparing crops needs no torch
    from torch import Tensor

CROP_SIDE = 112  # pixels
MEAN = STD = 127.5  # of every channel; the contract of an exported bundle has the same values


def to_input(crops: "Tensor") -> "Tensor":
    """Scale RGB crops of bytes to a network's input, from -1 to 1, in the same memory layout."""
    return crops.float().sub_(MEAN).div_(STD)
