"""Reads a folder of Labeled Faces in the Wild: `images/<Name>/<Name>_<nnnn>.jpg` and `pairs.txt`."""

from pathlib import Path

from sameface.model.measurement.lfw_pairs import Pair, read_pairs


def read_lfw(folder: Path) -> list[Pair]:
    """The pairs of `folder`."""
    return read_pairs(folder / "pairs.txt", folder / "images")
