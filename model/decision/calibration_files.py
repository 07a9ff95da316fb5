"""The calibrations of a bundle, bound to it by its identity: files in its folder, and those of the store."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from sameface.model.bundles.bundle import CALIBRATIONS, MANIFEST, Bundle, read_json
from sameface.model.bundles.contract import NAME, freeze
from sameface.model.data_folder import GalleryPlace
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
from sameface.model.store.access.audit import write_compactly
from sameface.model.store.calibrations import peek_calibrations
from sameface.model.store.store import Store

DECIDES = ("calibration", "published_threshold")  # of a bundle's contract


class Calibrations:
    """The calibrations of a bundle by name; `get` reads them again if it does not know a name.

    `gallery` is the database with those that users made; they go before files of the same name. What decides
    is `default`, else the one that was chosen in the database, else the one that the bundle's contract names.
    """

    def __init__(
        self, bundle: Bundle, default: str | None = None, gallery: GalleryPlace | None = None
    ) -> None:
        self.bundle = bundle
        self.gallery = gallery
        self.own: frozenset[str] = frozenset()  # the full names of those in the database
        chosen = self._read()
        self._name = default or chosen or bundle.contract.calibration
        self.default_name = complete_name(bundle, self._name) if self._name else None

    @cached_property
    def default(self) -> Calibration | None:
        """The calibration that decides, or None; raises if it is gone."""
        return self.get(self._name) if self._name else None

    def list(self) -> list[Calibration]:
        """All calibrations, sorted by name, read anew."""
        self._read()
        return [self.known[name] for name in sorted(self.known)]

    def get(self, name: str) -> Calibration:
        """The calibration `name`, which may begin with the bundle's name and a slash."""
        full = complete_name(self.bundle, name)
        if full not in self.known:
            self._read()
        if full not in self.known:
            there = ", ".join(sorted(self.known)) or "none"
            raise CalibrationNotFound(f"There is no calibration {name!r}; there are: {there}.")
        return self.known[full]

    def _read(self) -> str | None:
        """Read all calibrations, and return the name of the one that was chosen in the database."""
        contents, chosen = (
            peek_calibrations(self.gallery, self.bundle.identity) if self.gallery else ({}, None)
        )
        own = {
            complete_name(self.bundle, name): parse_calibration(
                content, name, self.bundle, f"calibration {name}"
            )
            for name, content in contents.items()
        }
        self.own, self.known = frozenset(own), load_calibrations(self.bundle) | own
        return chosen


def name_chosen(bundle: Bundle, gallery: GalleryPlace) -> Bundle:
    """The bundle, whose contract names the calibration that was chosen in the database, if one was."""
    _, chosen = peek_calibrations(gallery, bundle.identity)
    contract = bundle.contract
    return dataclasses.replace(
        bundle, contract=dataclasses.replace(contract, calibration=chosen or contract.calibration)
    )


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
        content = read_json(path)
    except BundleRefused as error:
        raise CalibrationRefused(error.detail) from error
    return parse_calibration(content, path.stem, bundle, str(path))


def parse_calibration(content: Mapping[str, Any], name: str, bundle: Bundle, source: str) -> Calibration:
    """The calibration `name` from its JSON object; a refusal says its `source`."""
    try:
        calibration = read_calibration(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CalibrationRefused(f"{source} is no calibration: {error!r}.") from error
    if calibration.identity != bundle.identity:
        raise CalibrationRefused(
            f"{source} was measured with another bundle: identity {calibration.identity[:12]}, and"
            f" {bundle.contract.name} is {bundle.identity[:12]}. Measure again with `sameface calibrate`."
        )
    return dataclasses.replace(calibration, name=complete_name(bundle, name))


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
    calibration: Calibration,
    bundle: Bundle,
    gallery: GalleryPlace,
    *,
    default: bool = False,
    replacing: bool = False,
) -> bool:
    """Keep a calibration in the database `gallery`, and decide by it if `default` or if nothing else does.

    Returns whether it decides from now on.
    """
    name = calibration.name.removeprefix(f"{bundle.contract.name}/")
    there = refuse_name(name, bundle, gallery, replacing=replacing)
    content = json.loads(json.dumps(dataclasses.asdict(calibration)))  # tuples as lists
    with closing(Store(gallery)) as store:
        store.calibrations.save(bundle.identity, name, content, replacing=replacing)
        if default or there.default_name is None:
            store.calibrations.choose(bundle.identity, name)
    return default or there.default_name in (None, calibration.name)


def refuse_name(name: str, bundle: Bundle, gallery: GalleryPlace, *, replacing: bool) -> Calibrations:
    """Raise if a new calibration cannot have this name; returns the existing calibrations."""
    if not NAME.fullmatch(name):
        raise CalibrationRefused(
            f"{name!r} cannot be a calibration's name: use letters, digits and . _ ~ -, none of them first."
        )
    there = Calibrations(bundle, gallery=gallery)
    if complete_name(bundle, name) in there.known and not replacing:
        raise CalibrationRefused(
            f"There is a calibration {name!r} already: choose another name, or --replace."
        )
    return there


def share_files(bundle: Bundle, store: Store, *, replacing: bool = False) -> list[str]:
    """Note in a store of several machines what the bundle's files decide by; returns the names of the files.

    Raises if another machine noted other contents, unless `replacing`: machines must decide alike. A
    calibration that is also in the store is left out, because the store's goes before the file.
    """
    if isinstance(store.place, Path):  # the gallery of one machine
        return []
    own, _ = store.calibrations.read(bundle.identity)
    contract = read_json(bundle.folder / MANIFEST)
    contents: dict[str, object] = {MANIFEST: [contract.get(key) for key in DECIDES]}
    for path in (bundle.folder / CALIBRATIONS).glob("*.json"):
        if path.stem not in own:
            contents[f"{CALIBRATIONS}/{path.name}"] = read_json(path)
    hashes = {
        name: hashlib.sha256(write_compactly(content)).hexdigest() for name, content in contents.items()
    }
    others = store.calibrations.note_files(bundle.identity, hashes, replacing=replacing)
    if others and not replacing:
        name = bundle.contract.name
        raise CalibrationRefused(
            f"Another machine that shares this gallery decides by other contents of {', '.join(others)} of"
            f" {name}. Copy its folder to {bundle.folder}; or, if the files here are right, run"
            f" `sameface calibrations share {name}` here and copy them to the others."
        )
    return sorted(hashes)
