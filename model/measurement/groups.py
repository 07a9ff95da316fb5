"""Error rates by group of people, to show whether a threshold is fair to all groups."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sameface.model.decision.calibration import GroupRates
from sameface.model.measurement.errors import LabelsRefused
from sameface.model.measurement.intervals import measure_rates
from sameface.model.measurement.labelled_photos import SHOWN, LabelledFaces
from sameface.model.measurement.scores import LabelledEmbeddings, Scores, score_all_pairs


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A group of people, and the scores of the pairs within the group."""

    name: str
    people: int
    faces: LabelledEmbeddings
    genuine: Scores
    impostor: Scores


def read_groups(file: Path, faces: LabelledFaces) -> list[Group]:
    """The groups of a CSV of `identity,group`, which must name everybody in the folder and nobody else."""
    named = read_rows(file)
    there = set(faces.names)
    refuse(file, sorted(named.keys() - there), "names people who are not in the folder")
    refuse(file, sorted(there - named.keys()), "does not say the group of")
    members: dict[str, list[int]] = {}
    for number, name in enumerate(faces.names):
        members.setdefault(named[name], []).append(number)
    return [make_group(name, np.array(people), faces.embedded) for name, people in sorted(members.items())]


def read_rows(file: Path) -> dict[str, str]:
    """The group of each identity in a CSV of `identity,group`."""
    try:
        rows = [row for row in csv.reader(file.read_text("utf-8-sig").splitlines()) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LabelsRefused(f"{file} cannot be read: {error}.") from error
    if rows and [cell.strip().lower() for cell in rows[0]] == ["identity", "group"]:
        rows = rows[1:]
    if not rows or any(len(row) != 2 or not all(cell.strip() for cell in row) for row in rows):
        raise LabelsRefused(f"{file} must have lines of two columns: identity,group.")
    named = {identity.strip(): group.strip() for identity, group in rows}
    if len(named) < len(rows):
        raise LabelsRefused(f"{file} names an identity twice.")
    return named


def refuse(file: Path, names: list[str], what: str) -> None:
    """Raise an error that lists `names`, if there are any; `what` says what is wrong with them."""
    if names:
        rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise LabelsRefused(f"{file} {what}: {', '.join(names[:SHOWN])}{rest}.")


def make_group(name: str, people: NDArray[np.int64], embedded: LabelledEmbeddings) -> Group:
    """The group of these people with its scores; raises if it lacks genuine or impostor pairs."""
    faces = embedded.of_people(people)
    genuine, impostor = score_all_pairs(faces)
    if not genuine.pairs or not impostor.pairs:
        raise LabelsRefused(f"The group {name!r} has no genuine or no impostor pairs: join it with another.")
    return Group(name, len(people), faces, genuine, impostor)


def measure_groups(groups: Sequence[Group], threshold: float) -> tuple[GroupRates, ...]:
    """The error rates of each group at `threshold`."""
    return tuple(
        GroupRates(
            group.name,
            group.people,
            group.impostor.pairs,
            group.genuine.pairs,
            measure_rates(group.faces, [threshold])[0],
        )
        for group in groups
    )


def compare_groups(groups: Sequence[GroupRates]) -> tuple[float | None, float | None]:
    """The worst group's FMR and FNMR, each as a multiple of the best group's; None where that is zero."""
    fmrs = [group.rates.fmr.value for group in groups]
    fnmrs = [group.rates.fnmr.value for group in groups]
    ratios = [max(rates) / min(rates) if min(rates) > 0 else None for rates in (fmrs, fnmrs)]
    return ratios[0], ratios[1]
