"""The calibrations of a bundle: files in its folder, each bound to the bundle by its identity."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sameface.model.bundles.bundle import CALIBRATIONS, Bundle, read_json, rewrite_contract
from sameface.model.bundles.contract import NAME, freeze
from sameface.model.decision.calibration import (
    Calibration,
    Curve,
    ErrorRates,
    Evidence,
    GroupRates,
    Rate,
    SingleComparisons,
)
from sameface.model.errors import BundleRefused, CalibrationNotFound, CalibrationRefused
from sameface.model.files import write_atomically


class Calibrations:
    """The calibrations of a bundle by name; a file that was added meanwhile is found when it is asked for."""

    def __init__(self, bundle: Bundle, default: str | None = None) -> None:
        self.bundle = bundle
        self.known = load_calibrations(bundle)
        chosen = default or bundle.contract.calibration
        self.default = self.get(chosen) if chosen else None

    def list(self) -> list[Calibration]:
        """All calibrations, sorted by name, read anew from the files."""
        self.known = load_calibrations(self.bundle)
        return [self.known[name] for name in sorted(self.known)]

    def get(self, name: str) -> Calibration:
        """The calibration `name`, which may begin with the bundle's name and a slash."""
        full = complete_name(self.bundle, name)
        if full not in self.known:
            self.known = load_calibrations(self.bundle)
        if full not in self.known:
            there = ", ".join(sorted(self.known)) or "none"
            raise CalibrationNotFound(f"There is no calibration {name!r}; there are: {there}.")
        return self.known[full]


def complete_name(bundle: Bundle, name: str) -> str:
    """The full name of a calibration: the bundle's name, a slash, its own name."""
    return name if "/" in name else f"{bundle.contract.name}/{name}"


def load_calibrations(bundle: Bundle) -> dict[str, Calibration]:
    """The calibrations in a bundle's folder, by their full names."""
    paths = sorted((bundle.folder / CALIBRATIONS).glob("*.json"))
    return {complete_name(bundle, path.stem): load_calibration(path, bundle) for path in paths}


def load_calibration(path: Path, bundle: Bundle) -> Calibration:
    """The calibration in the file `path`; raises if it is damaged or was measured with another bundle."""
    try:
        calibration = read_calibration(read_json(path))
    except BundleRefused as error:
        raise CalibrationRefused(error.detail) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CalibrationRefused(f"{path} is no calibration: {error!r}.") from error
    if calibration.identity != bundle.identity:
        raise CalibrationRefused(
            f"{path} was measured with another bundle: identity {calibration.identity[:12]}, and"
            f" {bundle.contract.name} is {bundle.identity[:12]}. Measure again with `sameface calibrate`."
        )
    return dataclasses.replace(calibration, name=complete_name(bundle, path.stem))


def read_calibration(fields: Mapping[str, Any]) -> Calibration:
    """A calibration from its JSON object; raises if a field is missing or of the wrong type."""
    curve = fields["curve"]
    similarities, fmrs = (tuple(map(to_number, curve[column])) for column in ("similarities", "fmrs"))
    return Calibration(
        name=str(fields["name"]),
        identity=str(fields["identity"]),
        created_at=str(fields["created_at"]),
        evidence=Evidence(**fields["evidence"]),
        curve=Curve(similarities, fmrs, to_number(curve["tail_scale"])),
        fusions={
            fusion: SingleComparisons(freeze(worth["faces"]), freeze(worth["comparisons"]))
            for fusion, worth in fields["fusions"].items()
        },
        decades=tuple(map(read_rates, fields["decades"])),
        groups=tuple(
            GroupRates(**{**group, "rates": read_rates(group["rates"])}) for group in fields["groups"]
        ),
        sketch=str(fields.get("sketch", "")),
    )


def read_rates(fields: Mapping[str, Any]) -> ErrorRates:
    """Error rates from their JSON object."""
    return ErrorRates(to_number(fields["threshold"]), Rate(**fields["fmr"]), Rate(**fields["fnmr"]))


def to_number(value: Any) -> float:
    """A finite number; raises for NaN and Infinity, which Python reads from JSON."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is no number")
    return number


def save_calibration(
    calibration: Calibration, bundle: Bundle, *, default: bool = False, replacing: bool = False
) -> Path:
    """Write a calibration into the bundle's folder, as the default if `default` or if there is none yet."""
    name = calibration.name.removeprefix(f"{bundle.contract.name}/")
    path = bundle.folder / CALIBRATIONS / f"{name}.json"
    refuse_name(name, path, replacing=replacing)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(dataclasses.asdict(calibration), indent=1).encode() + b"\n")
    if default or bundle.contract.calibration is None:
        rewrite_contract(bundle, dataclasses.replace(bundle.contract, calibration=name))
    return path


def refuse_name(name: str, path: Path, *, replacing: bool) -> None:
    """Raise if `name` is no valid name, or if `path` exists and may not be replaced."""
    if not NAME.fullmatch(name):
        raise CalibrationRefused(
            f"{name!r} cannot be a calibration's name: use letters, digits and . _ ~ -, none of them first."
        )
    if path.exists() and not replacing:
        raise CalibrationRefused(
            f"There is a calibration {name!r} already: choose another name, or --replace."
        )
