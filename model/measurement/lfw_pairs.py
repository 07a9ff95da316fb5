"""Lists of pairs in the format of LFW, and the accuracy of similarities on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.faces import Floats, Keys
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.scores import Flags
from sameface.model.photo.image import PHOTO_NAMES


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pictures, whether they show one person, and the fold they belong to."""

    fold: int
    same_person: bool
    probe: Path
    reference: Path


@dataclass(frozen=True, slots=True)
class PairAccuracy:
    """Cross-validated accuracy: each fold is decided by the best threshold of the other folds."""

    pairs: int
    wrong: int
    missing: int  # pairs without a similarity, which are wrong
    threshold: float  # the mean over the folds

    @property
    def accuracy(self) -> float:
        """The share of right decisions."""
        return 1 - self.wrong / self.pairs


def read_pairs(file: Path, images: Path) -> list[Pair]:
    """The pairs of a file like LFW's `pairs.txt`, over `images/<Name>/<Name>_<nnnn>` of any suffix.

    Its header says how many folds there are and how many matched and mismatched pairs each has. Instead of a
    number it may have a file's name. A missing picture stays in its pair, as a path without a suffix, so that
    whoever scores the pair can count it.
    """
    try:
        header, *lines = (split(line) for line in file.read_text("utf-8").splitlines() if line.strip())
        size = int(header[-1])
        rows = [parse_line(fields) for fields in lines]
    except OSError as error:
        raise PairsRefused(
            f"{file} cannot be read: {error.strerror}. `sameface pairs FOLDER` makes a list of pairs."
        ) from error
    except (ValueError, IndexError) as error:
        raise PairsRefused(
            f"{file} is no list of pairs as LFW has it. `sameface pairs FOLDER` makes one."
        ) from error
    if not rows or size < 1:
        raise PairsRefused(f"{file} lists no pairs.")
    found, pairs = index_pictures(images), []
    for number, (first, second) in enumerate(rows):
        probe, reference = (find(images / path, found) for path in (first, second))
        pairs.append(Pair(number // (2 * size), first.parent == second.parent, probe, reference))
    return pairs


def split(line: str) -> list[str]:
    """The columns of a line; names may have spaces if tabs are between the columns."""
    return [column.strip() for column in line.split("\t")] if "\t" in line else line.split()


def parse_line(fields: list[str]) -> tuple[Path, Path]:
    """Two pictures, as paths in their folder: of one person in `Name 1 2`, of two in `Name 1 Other 2`."""
    if len(fields) == 3:
        fields = [fields[0], fields[1], fields[0], fields[2]]
    name, first, other, second = fields
    return name_picture(name, first), name_picture(other, second)


def name_picture(person: str, which: str) -> Path:
    """A person's picture by its number, as LFW names it, or by its file's name."""
    if PHOTO_NAMES.fullmatch(which):
        return Path(person, which)
    return Path(person, f"{person}_{int(which):04d}")


def index_pictures(images: Path) -> dict[Path, Path]:
    """The pictures by their paths, with and without a suffix; crops have another one than their photos."""
    paths = sorted(images.glob("*/*"))
    return {path.with_suffix(""): path for path in paths} | {path: path for path in paths}


def find(path: Path, found: dict[Path, Path]) -> Path:
    """The picture at a path, whatever suffix it has; a missing one is the path without a suffix."""
    bare = path.with_suffix("") if PHOTO_NAMES.fullmatch(path.name) else path
    return found.get(path) or found.get(bare) or bare


def measure_accuracy(similarities: Sequence[float] | Floats, pairs: Sequence[Pair]) -> PairAccuracy:
    """Decide each fold by the best threshold of the other folds; a similarity of NaN is an error."""
    scores = np.asarray(similarities, np.float32)
    same = np.array([pair.same_person for pair in pairs])
    wrong, threshold = decide_by_folds(scores, same, np.array([pair.fold for pair in pairs]))
    return PairAccuracy(len(pairs), int(wrong.sum()), int(np.isnan(scores).sum()), threshold)


def decide_by_folds(scores: Floats, same: Flags, folds: Keys) -> tuple[Flags, float]:
    """Which pairs are wrong, each fold decided by the best threshold of the others; the mean threshold."""
    wrong, thresholds = np.isnan(scores), []
    for fold in np.unique(folds):
        tried = folds == fold
        others = ~tried if (~tried).any() else tried  # a single fold is decided by its own
        threshold = find_best_threshold(scores[others], same[others])
        thresholds.append(threshold)
        wrong[tried] |= (scores[tried] >= threshold) != same[tried]
    return wrong, float(np.mean(thresholds))


def find_best_threshold(scores: Floats, same: Flags) -> float:
    """The threshold with the fewest errors; it is one of the scores, and pairs from it up match."""
    known = ~np.isnan(scores)
    if not known.any():
        return 0.0
    scores, same = scores[known], same[known]
    order = np.argsort(scores, kind="stable")
    scores, same = scores[order], same[order]
    # With the threshold at the k-th score, genuine pairs before it are missed, impostors from it on match.
    missed = np.concatenate(([0], np.cumsum(same)[:-1]))
    matched = np.cumsum(~same[::-1])[::-1]
    first = np.concatenate(([True], scores[1:] != scores[:-1]))  # equal scores are decided together
    errors = np.where(first, missed + matched, len(scores) + 1)
    return float(scores[int(np.argmin(errors))])
