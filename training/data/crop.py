"""The crops that training works on: aligned to the template, square, and how a network sees them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # preparing crops needs no torch
    from torch import Tensor

CROP_SIDE = 112  # pixels
MEAN = STD = 127.5  # of every channel; the contract of an exported bundle says the same to the server


def to_input(crops: "Tensor") -> "Tensor":
    """RGB crops of bytes as a network's input, from -1 to 1, in the same memory layout."""
    return crops.float().sub_(MEAN).div_(STD)
