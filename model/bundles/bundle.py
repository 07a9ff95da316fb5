"""A bundle: an ONNX file in a folder beside the contract that says how to use it."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sameface.model.bundles.contract import Contract, read_contract
from sameface.model.errors import BundleRefused
from sameface.model.faces import Floats, Pixels
from sameface.model.files import hash_file, make_private_folder, write_atomically

MANIFEST = "bundle.json"
CALIBRATIONS = "calibrations"  # the folder of a bundle's calibrations

# The outputs of a detector: each part for every stride, with this many numbers per cell.
DETECTOR_STRIDES = (8, 16, 32)
DETECTOR_PARTS = {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}


@dataclass(frozen=True)
class Bundle:
    """A contract, the ONNX file that it describes, and the hash of that file."""

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
        """The hash of the file and of every field that changes an embedding; collections are bound to it."""
        deciding = ("kind", "input_size", "colour_order", "mean", "std", "template", "dimension")
        parts = {field: to_canonical(getattr(self.contract, field)) for field in deciding}
        parts["sha256"] = self.sha256
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """The fields that `sameface models` and GET /v1/models show."""
        shown = ("name", "kind", "dimension", "published_threshold", "calibration", "licence", "source")
        hashes = {"sha256": self.sha256, "identity": self.identity}
        return {field: getattr(self.contract, field) for field in shown} | hashes

    def preprocess(self, images: Pixels, canvas: Sequence[int] | None = None) -> Floats:
        """RGB images (batch, height, width, 3) as the network's input (batch, 3, height, width).

        With a `canvas` (height, width) they lie in the top left corner of a black one.
        """
        count, height, width, _ = images.shape
        ordered = images[..., ::-1] if self.contract.colour_order == "bgr" else images
        pixels = np.empty((count, 3, *(canvas or (height, width))), np.float32)
        pixels[:, :, :height, :width] = ordered.transpose(0, 3, 1, 2)
        pixels[:, :, height:] = pixels[:, :, :height, width:] = 0
        if any(self.contract.mean):
            pixels -= np.array(self.contract.mean, np.float32).reshape(3, 1, 1)
        if self.contract.std != (1.0, 1.0, 1.0):
            pixels /= np.array(self.contract.std, np.float32).reshape(3, 1, 1)
        return pixels


def to_canonical(value: Any) -> Any:
    """A contract's value as it is hashed: tuples as lists, 0 as 0.0, because they are the same number."""
    if isinstance(value, tuple):
        return [to_canonical(item) for item in value]
    return float(value) if isinstance(value, int) else value


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


def find_folder(bundle: str | os.PathLike[str], models: Path) -> Path:
    """The folder of `bundle`, which is a bundle's folder or the name of one in the folder `models`."""
    folder, named = Path(bundle).expanduser(), models / bundle
    if Path(bundle).name != str(bundle) or (folder / MANIFEST).exists():
        return folder
    if not named.is_dir():
        names = ", ".join(sorted(path.parent.name for path in models.glob(f"*/{MANIFEST}"))) or "none"
        raise BundleRefused(f"There is no bundle {str(bundle)!r}, by name or folder; there are: {names}.")
    return named


def load_bundle(folder: Path, kind: str | None = None) -> Bundle:
    """The bundle in `folder`, its hash checked; one of another `kind` is refused."""
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
    """Make a bundle of `onnx_file` in `folder`: first the file, last the manifest, each atomically."""
    make_private_folder(folder)
    content = onnx_file.read_bytes()
    bundle = Bundle(contract, folder, onnx_file.name, hashlib.sha256(content).hexdigest())
    if onnx_file != bundle.path:
        write_atomically(bundle.path, content)
    return rewrite_contract(bundle, contract)


def rewrite_contract(bundle: Bundle, contract: Contract) -> Bundle:
    """Replace the bundle's contract, for the same ONNX file; returns the new bundle."""
    manifest = dataclasses.asdict(contract) | {"file": bundle.file, "sha256": bundle.sha256}
    write_atomically(bundle.folder / MANIFEST, json.dumps(manifest, indent=2).encode() + b"\n")
    return Bundle(contract, bundle.folder, bundle.file, bundle.sha256)
