"""Prepared graphs are made once, and again if they are damaged or belong to something else."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sameface.model.bundles.bundle import Bundle, hash_file, load_bundle
from sameface.model.errors import FolderRefused
from sameface.model.runtime import prepare_graph as preparation
from sameface.model.runtime.prepare_graph import describe_precision, prepare_graph
from sameface.model.runtime.session_pool import open_sessions
from tests.networks import (
    build_recogniser,
    random_pixels,
    run_published,
)


def test_the_second_open_comes_from_the_cache(bundle: Bundle, cache: Path) -> None:
    first = prepare_graph(bundle, "cpu", cache)
    before = {path: path.stat().st_mtime_ns for path in cache.glob("*.onnx")}
    assert prepare_graph(bundle, "cpu", cache) == first
    assert {path: path.stat().st_mtime_ns for path in cache.glob("*.onnx")} == before
    assert {path.suffix for path in cache.iterdir()} == {".onnx", ".json", ".lock"}


def test_workers_that_start_together_prepare_a_graph_once(
    bundle: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, made, make = threading.Barrier(2), [], preparation.make_variant

    def prepare() -> tuple[Path, dict]:
        start.wait()
        return prepare_graph(bundle, "cpu", cache)

    monkeypatch.setattr(preparation, "make_variant", lambda *given: made.append(given) or make(*given))
    with ThreadPoolExecutor(2) as workers:
        first, second = (each.result() for each in [workers.submit(prepare) for _ in range(2)])
    assert first == second
    assert len(made) == 1


def test_a_report_never_vouches_for_the_graph_of_another_process(
    bundle: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = preparation.write_atomically

    def write_too_late(path: Path, content: bytes) -> None:
        write(path, b"another graph" if path.suffix == ".onnx" else content)

    monkeypatch.setattr(preparation, "write_atomically", write_too_late)
    prepare_graph(bundle, "cpu", cache)
    monkeypatch.undo()
    assert_made_again(bundle, cache)


def test_a_cache_that_may_only_be_read_is_used(
    bundle: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    first = prepare_graph(bundle, "cpu", cache)
    monkeypatch.setattr(preparation, "exclusive_lock", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert prepare_graph(bundle, "cpu", cache) == first
    with pytest.raises(FolderRefused, match=r"cannot be kept in .*: Permission denied\. Name another folder"):
        prepare_graph(bundle, "cpu", cache / "new")


def test_another_machine_prepares_a_graph_of_its_own(
    bundle: Bundle, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = prepare_graph(bundle, "cpu", cache)
    assert describe_precision(bundle, cache)["precision"] == "exact"
    monkeypatch.setattr(preparation, "name_machine", lambda: "another")
    assert describe_precision(bundle, cache)["precision"] is None
    there, _ = prepare_graph(bundle, "cpu", cache)
    assert here != there
    assert here.exists()


def test_the_cached_graph_itself_is_what_runs(bundle: Bundle, cache: Path) -> None:
    """A report that vouches for another graph leads to that one."""
    prepared, report = prepare_graph(bundle, "cpu", cache)
    other = build_recogniser(cache, seed=2)
    prepared.write_bytes(other.path.read_bytes())
    report_file = prepared.with_suffix(".json")
    report_file.write_text(report_file.read_text().replace(report["sha256"], hash_file(prepared)))
    pixels = random_pixels(bundle, 1)
    [found] = open_sessions(bundle, "cpu", cache).run(pixels)
    assert found == pytest.approx(run_published(other, pixels), rel=1e-4, abs=1e-4)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def turn_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [cut_short, turn_a_bit, empty, remove])
def test_a_damaged_cached_graph_is_made_again(
    bundle: Bundle, cache: Path, damage: Callable[[Path], None]
) -> None:
    prepared, _ = prepare_graph(bundle, "cpu", cache)
    damage(prepared)
    assert_made_again(bundle, cache)


@pytest.mark.parametrize("damage", [cut_short, empty, remove])
def test_a_damaged_report_is_made_again(bundle: Bundle, cache: Path, damage: Callable[[Path], None]) -> None:
    prepared, _ = prepare_graph(bundle, "cpu", cache)
    damage(prepared.with_suffix(".json"))
    assert_made_again(bundle, cache)


def assert_made_again(bundle: Bundle, cache: Path) -> None:
    pixels = random_pixels(bundle, 2)
    [found] = open_sessions(bundle, "cpu", cache).run(pixels)
    assert found == pytest.approx(run_published(bundle, pixels), rel=1e-4, abs=1e-4)
    prepared, report = prepare_graph(bundle, "cpu", cache)
    assert hash_file(prepared) == report["sha256"]


def test_other_weights_get_their_own_graph(tmp_path: Path, cache: Path) -> None:
    bundles = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        bundles.append(build_recogniser(folder, seed=seed))
    assert prepare_graph(bundles[0], "cpu", cache)[0] != prepare_graph(bundles[1], "cpu", cache)[0]


def test_preparing_changes_neither_the_bundle_nor_its_identity(bundle: Bundle, cache: Path) -> None:
    files = {path: path.read_bytes() for path in bundle.folder.iterdir()}
    _, report = prepare_graph(bundle, "cpu", cache)
    assert report["sha256"] != bundle.sha256
    assert {path: path.read_bytes() for path in bundle.folder.iterdir()} == files
    again = load_bundle(bundle.folder)
    assert (again.sha256, again.identity) == (bundle.sha256, bundle.identity)
