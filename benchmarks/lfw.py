"""Reads a folder of Labeled Faces in the Wild: `images/<Name>/<Name>_<nnnn>.jpg` and `pairs.txt`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pair:
    """Two photos, whether they show one person, and the fold they belong to."""

    fold: int
    same_person: bool
    probe: Path
    reference: Path


def read_pairs(folder: Path) -> list[Pair]:
    """The pairs of `pairs.txt`: per fold first the matched, then the mismatched ones."""
    header, *lines = (folder / "pairs.txt").read_text("utf-8").splitlines()
    size = int(header.split()[1])
    pairs = []
    for number, line in enumerate(line for line in lines if line.strip()):
        fields = line.split()
        first, second = (fields[0], fields[1]), (fields[-2] if len(fields) == 4 else fields[0], fields[-1])
        probe, reference = (
            folder / "images" / name / f"{name}_{int(index):04d}.jpg" for name, index in (first, second)
        )
        pairs.append(Pair(number // (2 * size), len(fields) == 3, probe, reference))
    return pairs
