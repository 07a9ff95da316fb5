"""What `sameface.open()` does, a client of a server does too: every test of this room runs on both."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sameface
import sameface_client
from tests.conftest import Serve
from tests.faces.library import Faces, Library


@pytest.fixture(params=[sameface, sameface_client], ids=["in process", "client"])
def library(request: pytest.FixtureRequest) -> Library:
    return request.param


@pytest.fixture(scope="package")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a gallery of its own."""
    with serve(data=tmp_path_factory.mktemp("server")) as client:
        yield client


@pytest.fixture
def faces(library: Library, server: httpx.Client, data: Path, tmp_path: Path) -> Iterator[Faces]:
    """An empty gallery: in this process, or on the server."""
    models = data / "models"
    if library is sameface:
        opened = sameface.open(tmp_path, recognizer=models / "recogniser", detector=models / "detector")
    else:
        opened = sameface_client.connect(str(server.base_url))
    with opened:
        yield opened
    for collection in server.get("/v1/collections").json()["items"]:
        server.delete(f"/v1/collections/{collection['name']}")
