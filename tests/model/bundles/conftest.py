"""What tests of fetching share."""

import os
import threading
from collections.abc import Iterator

import pytest

from tests.model.bundles.file_server import FileServer, forget_pip_settings


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server that is pip's only package index."""
    forget_pip_settings(monkeypatch)
    server = FileServer()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.address}/simple")
    thread = threading.Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.server.shutdown()
    thread.join()
    server.server.server_close()
