"""Draws a list of pairs from folders of photos, in the format of LFW: balanced, and of many people."""

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sameface.model.measurement.errors import PairsRefused

SHARE = 2  # a person has at most this many times the genuine pairs of an average one
PATIENCE = 20  # rounds without a new impostor pair, after which there are taken to be no more

Photo = tuple[str, str]  # the person, and the file in the person's folder
PhotoPair = tuple[Photo, Photo]
Photos = Mapping[str, Sequence[str]]  # files by person


@dataclass(frozen=True, slots=True)
class Fold:
    """Pairs of people who are in no other fold; as many genuine as impostor ones."""

    genuine: list[PhotoPair]
    impostor: list[PhotoPair]

    @property
    def pairs(self) -> list[PhotoPair]:
        """All pairs, genuine ones first."""
        return self.genuine + self.impostor


@dataclass(frozen=True, slots=True)
class DrawnPairs:
    """Folds of equal size."""

    folds: list[Fold]

    @property
    def pairs(self) -> int:
        """The number of pairs, of which half are genuine."""
        return sum(len(fold.pairs) for fold in self.folds)

    def count_people(self) -> Counter[str]:
        """The number of pairs of each person who is in one."""
        pairs = (pair for fold in self.folds for pair in fold.pairs)
        return Counter(person for pair in pairs for person in {person for person, _ in pair})

    def write(self) -> str:
        """The list as LFW's `pairs.txt`: `Name 1 2` of one person, `Name 1 Other 2` of two, between tabs."""
        rows: list[tuple[object, ...]] = [(len(self.folds), len(self.folds[0].genuine))]
        for fold in self.folds:
            rows += [(one[0], shorten(one), shorten(other)) for one, other in fold.genuine]
            rows += [(one[0], shorten(one), other[0], shorten(other)) for one, other in fold.impostor]
        return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def shorten(photo: Photo) -> str:
    """The number of a file that is named as LFW names its own, `Name_0001.jpg`; else the file's name."""
    person, file = photo
    named = re.fullmatch(rf"{re.escape(person)}_(\d{{4}})\.\w+", file)
    return str(int(named[1])) if named else file


def draw_pairs(people: Photos, pairs: int, folds: int, seed: int) -> DrawnPairs:
    """At most `pairs` pairs in `folds` folds of different people; the same seed draws the same pairs."""
    refuse_names(people)
    dice = random.Random(seed)
    several = [person for person, files in people.items() if len(files) > 1]
    alone = [person for person, files in people.items() if len(files) == 1]
    possible = min(len(several), len(people) // 2)
    if not possible:
        raise PairsRefused("Nobody has two different photos, so there are no genuine pairs.")
    if folds > possible:
        raise PairsRefused(
            f"{folds} folds take {folds} people with two photos and as many others; there are {len(several)}"
            f" of {len(people)}: ask for --folds {possible} or fewer."
        )
    if pairs < 2 * folds:
        raise PairsRefused(f"{folds} folds have {2 * folds} pairs or more: ask for more --pairs.")
    dice.shuffle(several)
    dice.shuffle(alone)
    drawn = []
    for fold in range(folds):
        members = {person: people[person] for person in (several + alone)[fold::folds]}
        most = pairs // (2 * folds)
        drawn.append(Fold(draw_genuine(members, most, dice), draw_impostors(members, most, dice)))
    size = min(len(kind) for fold in drawn for kind in (fold.genuine, fold.impostor))
    return DrawnPairs([Fold(fold.genuine[:size], fold.impostor[:size]) for fold in drawn])


def refuse_names(people: Photos) -> None:
    """Raise for a name that would break the lines of the list."""
    for person, files in people.items():
        for name in (person, *files):
            if "\t" in name or name != name.strip() or len(name.splitlines()) != 1:
                raise PairsRefused(f"A list of pairs cannot hold the name {person}/{name!r}: rename it.")


def draw_genuine(people: Photos, most: int, dice: random.Random) -> list[PhotoPair]:
    """Genuine pairs in rounds, one of each person, so that people with many photos are not most of them."""
    several = {person: files for person, files in people.items() if len(files) > 1}
    rounds = math.ceil(SHARE * most / len(several))
    albums = []
    for person, files in several.items():
        all_pairs = math.comb(len(files), 2)
        chosen = dice.sample(range(all_pairs), min(rounds, all_pairs))
        albums.append([((person, files[a]), (person, files[b])) for a, b in map(unrank, chosen)])
    dealt = [album[turn] for turn in range(rounds) for album in albums if turn < len(album)]
    return dealt[:most]


def unrank(rank: int) -> tuple[int, int]:
    """Two different places by the rank of their pair: 0 1, 0 2, 1 2, 0 3, 1 3, 2 3 ..."""
    second = (1 + math.isqrt(1 + 8 * rank)) // 2
    return rank - second * (second - 1) // 2, second


def draw_impostors(people: Photos, most: int, dice: random.Random) -> list[PhotoPair]:
    """Impostor pairs in rounds: everybody stands in a circle and is compared with the next, by any photo."""
    circle, drawn, idle = list(people), dict[PhotoPair, None](), 0
    while len(drawn) < most and idle < PATIENCE:
        before = len(drawn)
        dice.shuffle(circle)
        for place, person in enumerate(circle):
            other = circle[(place + 1) % len(circle)]
            photos = (person, dice.choice(people[person])), (other, dice.choice(people[other]))
            drawn[min(photos), max(photos)] = None
        idle = 0 if len(drawn) > before else idle + 1
    return list(drawn)[:most]
