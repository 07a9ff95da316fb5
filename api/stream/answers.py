"""The answers to a block of entries, as lines of NDJSON or as columns of Arrow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from sameface.model.enroll import Enrollment
from sameface.model.errors import SamefaceError
from sameface.model.gallery.identified import Identified

Describe: TypeAlias = Callable[[SamefaceError], dict[str, Any]]  # a problem's fields


@dataclass(frozen=True, slots=True, eq=False)
class AnswerColumns:
    """Rows of an answer in Arrow: one per candidate or person enrolled; a failure is a row with an error."""

    ids: Sequence[str | None]
    person_ids: Sequence[str | None]
    names: Sequence[str | None]
    similarities: NDArray[np.float64]  # NaN is null
    matches: NDArray[np.bool_]
    errors: Sequence[str | None]  # the problem as JSON


class Answers(Protocol):
    """The answers to a block."""

    def to_lines(self, describe: Describe) -> list[dict[str, Any]]:
        """One line per entry, in their order."""

    def to_columns(self, describe: Describe) -> AnswerColumns:
        """The same as columns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked what in a block: the id of each entry, and its number in the body, from 1."""

    ids: Sequence[str | None]
    numbers: Sequence[int]

    def fail(self, place: int, error: SamefaceError, describe: Describe) -> dict[str, Any]:
        """The line of an entry that failed."""
        error.facts["line"] = self.numbers[place]
        return {"id": self.ids[place], "error": describe(error)}


@dataclass(frozen=True, slots=True)
class IdentifiedAnswers:
    """Who is in each probe of a block."""

    asked: Asked
    identified: Identified

    def to_lines(self, describe: Describe) -> list[dict[str, Any]]:
        """One line per probe, in their order."""
        found = self.identified
        lines: list[dict[str, Any]] = [{"id": name, "results": []} for name in self.asked.ids]
        pairs = zip(found.candidates.owners, found.candidates.similarities.tolist(), strict=True)
        candidates = [
            {"person_id": who.person_id, "name": who.name, "similarity": similarity, "face_id": who.face_id}
            for who, similarity in pairs
        ]
        slices = pairwise(found.candidates.starts.tolist())
        faces = (found.places.tolist(), found.faces, found.normalised.tolist(), found.matched.tolist())
        for place, face, normalised, matched, (start, stop) in zip(*faces, slices, strict=True):
            lines[place]["results"].append(
                {
                    "face": face and face.to_dict(),
                    "normalised": normalised,
                    "match": candidates[start] if matched else None,
                    "candidates": candidates[start:stop],
                }
            )
        for place, error in found.errors.items():
            lines[place] = self.asked.fail(place, error, describe)
        return lines

    def to_columns(self, describe: Describe) -> AnswerColumns:
        """A row per candidate; a face without candidates, and a probe that failed, have a row of nulls."""
        found, starts = self.identified, self.identified.candidates.starts
        counts = np.diff(starts)
        rows_each = np.maximum(counts, 1)
        first_rows = np.cumsum(rows_each) - rows_each
        face_of = np.repeat(np.arange(len(counts)), rows_each)
        rank = np.arange(len(face_of)) - first_rows[face_of]
        which = np.where(counts[face_of] > 0, starts[face_of] + rank, -1)  # candidate of each row
        failed = np.array(sorted(found.errors), np.intp)
        places = np.append(found.places[face_of], failed)
        order = np.argsort(places, kind="stable")
        which = np.append(which, np.full(len(failed), -1))[order]
        matches = np.append((rank == 0) & found.matched[face_of], np.zeros(len(failed), bool))[order]
        problems = {
            place: to_json(self.asked.fail(place, error, describe)["error"]).decode()
            for place, error in found.errors.items()
        }
        owners = [found.candidates.owners[each] if each >= 0 else None for each in which.tolist()]
        at = places[order].tolist()
        return AnswerColumns(
            [self.asked.ids[place] for place in at],
            [owner and owner.person_id for owner in owners],
            [owner and owner.name for owner in owners],
            np.append(found.candidates.similarities, np.nan)[which],  # -1 is the last, which is NaN
            matches,
            [problems.get(place) for place in at] if problems else [None] * len(at),
        )


@dataclass(frozen=True, slots=True)
class EnrolledAnswers:
    """Who was enrolled by each entry of a block."""

    asked: Asked
    outcomes: Sequence[Enrollment | SamefaceError]

    def to_lines(self, describe: Describe) -> list[dict[str, Any]]:
        """One line per entry, in their order."""
        return [
            self.asked.fail(place, outcome, describe)
            if isinstance(outcome, SamefaceError)
            else {
                "id": self.asked.ids[place],
                "person_id": outcome.person_id,
                "faces": [face.to_dict() for face in outcome.faces],
                "warnings": [warning.to_dict() for warning in outcome.warnings],
            }
            for place, outcome in enumerate(self.outcomes)
        ]

    def to_columns(self, describe: Describe) -> AnswerColumns:
        """A row per entry: the id of who was enrolled, or the error."""
        lines = self.to_lines(describe)
        count = len(lines)
        return AnswerColumns(
            self.asked.ids,
            [line.get("person_id") for line in lines],
            [None] * count,
            np.full(count, np.nan),
            np.zeros(count, bool),
            [to_json(line["error"]).decode() if "error" in line else None for line in lines],
        )
