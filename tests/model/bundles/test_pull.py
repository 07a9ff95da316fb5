"""Fetching published files and bundles from a server that runs here."""

import dataclasses
import hashlib
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import MANIFEST, load_bundle, save_bundle
from sameface.model.bundles.published import (
    MODELS,
    PORTRAITS,
    Address,
    PackageMember,
    PublishedFile,
    PublishedModel,
)
from sameface.model.bundles.pull import pull_model
from sameface.model.errors import PullFailed
from tests.model.bundles.file_server import (
    CONTENT,
    IN_WHEEL,
    OTHER,
    WHEEL,
    FileServer,
    fetch_file,
    make_wheel,
    published,
)
from tests.networks import build_recogniser

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
