"""A bundle: an ONNX file in a folder beside the contract that says how to use it."""

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sameface.model.errors import BundleRefused
from sameface.model.faces import Floats, Pixels, Point
from sameface.model.files import hash_file, write_atomically

MANIFEST = "bundle.json"
KINDS = ("recogniser", "detector")
COLOUR_ORDERS = ("rgb", "bgr")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")  # also a folder, so neither . nor ..

# A detector yields each part for every stride, with so many numbers per cell.
DETECTOR_STRIDES = (8, 16, 32)
DETECTOR_PARTS = {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a network expects and yields; the part of a bundle that a person writes."""

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
    recipe: Mapping[str, Any] | None = None  # how we trained it, if we did
    parity: Mapping[str, Any] | None = None  # how the export compares with what was trained
    calibration: str | None = None  # the one of its calibrations that is decided by

    def __post_init__(self) -> None:
        for field, fits, expected in self.checks():
            if not fits:
                raise BundleRefused(
                    f"The contract's {field} must be {expected}, not {getattr(self, field)!r}."
                )

    def checks(self) -> list[tuple[str, bool, str]]:
        """Field, whether it fits, and what would."""
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
    """Whether this can be the name of a bundle or of a calibration."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def are_numbers(values: Any, count: int, *, positive: bool = False) -> bool:
    """Whether these are `count` finite numbers."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(isinstance(value, int | float) and math.isfinite(value) for value in values)
        and (not positive or min(values) > 0)
    )


def are_whole(values: Any, count: int) -> bool:
    """Whether these are `count` positive whole numbers."""
    return are_numbers(values, count, positive=True) and all(isinstance(value, int) for value in values)


def are_points(values: Any, count: int) -> bool:
    """Whether these are `count` points, not all in one place."""
    return (
        isinstance(values, tuple)
        and len(values) == count
        and all(are_numbers(point, 2) for point in values)
        and len(set(values)) > 1
    )


@dataclass(frozen=True)
class Bundle:
    """A contract, the file it speaks of, and that file's hash."""

    contract: Contract
    folder: Path
    file: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where the ONNX file is."""
        return self.folder / self.file

    @cached_property
    def identity(self) -> str:
        """The hash of all that decides an embedding: galleries and calibrations bind to it."""
        deciding = ("kind", "input_size", "colour_order", "mean", "std", "template", "dimension")
        parts = {field: to_canonical(getattr(self.contract, field)) for field in deciding}
        parts["sha256"] = self.sha256
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """What matters to somebody who chooses a bundle or wants to know which one answered."""
        shown = ("name", "kind", "dimension", "published_threshold", "calibration", "licence", "source")
        hashes = {"sha256": self.sha256, "identity": self.identity}
        return {field: getattr(self.contract, field) for field in shown} | hashes

    def preprocess(self, images: Pixels) -> Floats:
        """RGB images (batch, height, width, 3) as the network's input (batch, 3, height, width)."""
        ordered = images[..., ::-1] if self.contract.colour_order == "bgr" else images
        pixels = np.ascontiguousarray(ordered.transpose(0, 3, 1, 2), np.float32)
        if any(self.contract.mean):
            pixels -= np.array(self.contract.mean, np.float32).reshape(3, 1, 1)
        if self.contract.std != (1.0, 1.0, 1.0):
            pixels /= np.array(self.contract.std, np.float32).reshape(3, 1, 1)
        return pixels


def read_contract(fields: Mapping[str, Any]) -> Contract:
    """A contract from its JSON object; unknown and missing keys are errors that name the known ones."""
    known = {field.name: field for field in dataclasses.fields(Contract)}
    if unknown := sorted(fields.keys() - known.keys()):
        raise BundleRefused(
            f"The contract has unknown keys: {', '.join(unknown)}. Known: {', '.join(known)}."
        )
    required = {name for name, field in known.items() if field.default is dataclasses.MISSING}
    if missing := sorted(required - fields.keys()):
        raise BundleRefused(f"The contract lacks {', '.join(missing)}.")
    return Contract(**{name: freeze(value) for name, value in fields.items()})


def to_canonical(value: Any) -> Any:
    """A value in the one way it is hashed: 0 and 0.0 are the same number."""
    if isinstance(value, tuple):
        return [to_canonical(item) for item in value]
    return float(value) if isinstance(value, int) else value


def freeze(value: Any) -> Any:
    """JSON's lists as tuples, all the way down."""
    return tuple(freeze(item) for item in value) if isinstance(value, list) else value


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise BundleRefused(f"There is no {path}.") from error
    except (OSError, ValueError) as error:
        raise BundleRefused(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise BundleRefused(f"{path} must hold a JSON object.")
    return content


def load_bundle(folder: Path, kind: str | None = None) -> Bundle:
    """The bundle in a folder, its hash checked, of the kind that is needed."""
    if not (folder / MANIFEST).exists():
        raise BundleRefused(f"There is no bundle in {folder}: run `sameface pull`, or name another folder.")
    fields = read_json(folder / MANIFEST)
    file, sha256 = str(fields.pop("file", "")), str(fields.pop("sha256", ""))
    bundle = Bundle(read_contract(fields), folder, file, sha256)
    if kind and bundle.contract.kind != kind:
        raise BundleRefused(f"{folder} holds a {bundle.contract.kind}; a {kind} is needed here.")
    if not bundle.path.is_file() or bundle.path.parent != folder:
        raise BundleRefused(f"{folder} lacks its ONNX file {file!r}.")
    if (found := hash_file(bundle.path)) != sha256:
        raise BundleRefused(
            f"{bundle.path} is not the file of the contract: sha256 {found}, expected {sha256}."
        )
    return bundle


def save_bundle(contract: Contract, onnx_file: Path, folder: Path) -> Bundle:
    """Make a bundle of an ONNX file: the file first, the manifest last, each written atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    content = onnx_file.read_bytes()
    bundle = Bundle(contract, folder, onnx_file.name, hashlib.sha256(content).hexdigest())
    if onnx_file != bundle.path:
        write_atomically(bundle.path, content)
    return rewrite_contract(bundle, contract)


def rewrite_contract(bundle: Bundle, contract: Contract) -> Bundle:
    """The bundle with another contract for the same file."""
    manifest = dataclasses.asdict(contract) | {"file": bundle.file, "sha256": bundle.sha256}
    write_atomically(bundle.folder / MANIFEST, json.dumps(manifest, indent=2).encode() + b"\n")
    return Bundle(contract, bundle.folder, bundle.file, bundle.sha256)
