"""The contract of a bundle: what its network expects and yields, as a person writes it in JSON."""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sameface.model.errors import BundleRefused
from sameface.model.faces import Point

KINDS = ("recogniser", "detector")
COLOUR_ORDERS = ("rgb", "bgr")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")  # also a folder's name, so neither . nor ..


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The input that a network expects, the output that it yields, and where it comes from."""

    name: str
    kind: str
    input_size: tuple[int, int]  # width, height
    colour_order: str
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    template: tuple[Point, ...] = ()  # five landmarks on the crop; recognisers only
    dimension: int | None = None  # of the embedding; recognisers only
    published_threshold: float | None = None
    licence: str = "unknown"
    source: str = "unknown"
    recipe: Mapping[str, Any] | None = None  # the training recipe, if sameface trained it
    parity: Mapping[str, Any] | None = None  # how far the export's outputs are from the trained network's
    calibration: str | None = None  # the name of the calibration that thresholds come from

    def __post_init__(self) -> None:
        for field, fits, expected in self.checks():
            if not fits:
                raise BundleRefused(
                    f"The contract's {field} must be {expected}, not {getattr(self, field)!r}."
                )

    def checks(self) -> list[tuple[str, bool, str]]:
        """For each field its name, whether its value is valid, and what a valid value would be."""
        recogniser = self.kind == "recogniser"
        threshold = self.published_threshold
        similar = threshold is None or are_numbers((threshold,), 1)
        return [
            ("name", is_name(self.name), "1 to 128 of A-Za-z0-9._~-, a letter or digit first"),
            ("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}"),
            ("input_size", are_whole(self.input_size, 2), "a width and a height in pixels"),
            ("colour_order", self.colour_order in COLOUR_ORDERS, f"one of {', '.join(COLOUR_ORDERS)}"),
            ("mean", are_numbers(self.mean, 3), "three numbers"),
            ("std", are_numbers(self.std, 3, positive=True), "three positive numbers"),
            ("template", not recogniser or are_points(self.template, 5), "five points"),
            ("dimension", not recogniser or are_whole((self.dimension,), 1), "a positive number"),
            ("published_threshold", similar, "a similarity or null"),
            ("licence", isinstance(self.licence, str), "text"),
            ("source", isinstance(self.source, str), "text"),
            ("calibration", self.calibration is None or is_name(self.calibration), "a name or null"),
        ]


def is_name(value: Any) -> bool:
    """Whether `value` can be the name of a bundle or of a calibration."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def are_numbers(values: Any, count: int, *, positive: bool = False) -> bool:
    """Whether `values` are `count` finite numbers."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(isinstance(value, int | float) and math.isfinite(value) for value in values)
        and (not positive or min(values) > 0)
    )


def are_whole(values: Any, count: int) -> bool:
    """Whether `values` are `count` positive whole numbers."""
    return are_numbers(values, count, positive=True) and all(isinstance(value, int) for value in values)


def are_points(values: Any, count: int) -> bool:
    """Whether `values` are `count` points, not all in one place."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(are_numbers(point, 2) for point in values)
        and len(set(values)) > 1
    )


def read_contract(fields: Mapping[str, Any]) -> Contract:
    """A contract from its JSON object; unknown and missing keys are errors that list the known ones."""
    known = {field.name: field for field in dataclasses.fields(Contract)}
    if unknown := sorted(fields.keys() - known.keys()):
        raise BundleRefused(
            f"The contract has unknown keys: {', '.join(unknown)}. Known: {', '.join(known)}."
        )
    required = {name for name, field in known.items() if field.default is dataclasses.MISSING}
    if missing := sorted(required - fields.keys()):
        raise BundleRefused(f"The contract lacks {', '.join(missing)}.")
    return Contract(**{name: freeze(value) for name, value in fields.items()})


def freeze(value: Any) -> Any:
    """The lists in a JSON value as tuples, at every depth."""
    return tuple(freeze(item) for item in value) if isinstance(value, list) else value
