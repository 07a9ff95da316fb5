"""Wheel, sdist and editable install: everything is in them, and they work far from the checkout.

`make packages` runs this; `make test` does not, because it takes minutes.
"""

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.networks import build_detector, build_recogniser
from tests.packages.conftest import ROOT, Installed, Packages, list_checkout
from tests.pictures import photo_of

ROOMS = ("api", "model", "training")
NO_CODE = [  # what is forgotten most easily
    "py.typed",
    "model/bundles/shipped/sface-2021dec/lfw-dev.json",
    "training/evaluation/report.html",
    *(f"training/recipes/{path.name}" for path in (ROOT / "training" / "recipes").glob("*.toml")),
]

pytestmark = pytest.mark.timeout(600)


def files_of_rooms() -> set[str]:
    """Where the files of the three rooms have to be in a package."""
    return {f"sameface/{name}" for name in list_checkout(*ROOMS)}


def list_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def list_sdist(path: Path) -> set[str]:
    """The files of an sdist without the folder that they are in."""
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def test_a_wheel_is_one_package_with_all_rooms(packages: Packages) -> None:
    names = list_wheel(packages.wheel)
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"sameface"}
    assert files_of_rooms() - names == set()


def test_an_sdist_has_all_rooms_and_the_tests(packages: Packages) -> None:
    papers = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"}
    expected = papers | files_of_rooms() | list_checkout("tests")
    assert expected - list_sdist(packages.sdist) == set()


def test_a_wheel_of_the_sdist_has_the_same_files(packages: Packages) -> None:
    assert list_wheel(packages.wheel_of_sdist) == list_wheel(packages.wheel)


def test_sameface_is_imported_from_anywhere(installed: Installed) -> None:
    names = ", ".join(["sameface", *(f"sameface.{room}" for room in ROOMS)])
    done = installed.run("python", "-c", f"import {names}; print(sameface.__file__)")
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(done.stdout).is_relative_to(ROOT)


@pytest.mark.parametrize("name", [*ROOMS, "tests", "torch"])
def test_no_other_name_is_taken(installed: Installed, name: str) -> None:
    done = installed.run("python", "-c", f"import {name}")
    assert f"ModuleNotFoundError: No module named '{name}'" in done.stderr


def test_what_is_no_code_is_there_too(installed: Installed) -> None:
    code = (
        "import importlib.resources, json, sys; package = importlib.resources.files('sameface');"
        "print(json.dumps([name for name in sys.argv[1:] if not package.joinpath(name).is_file()]))"
    )
    assert json.loads(installed.run("python", "-c", code, *NO_CODE).stdout) == []


def test_the_command_says_what_it_can(installed: Installed) -> None:
    done = installed.run("sameface", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "verify" in done.stdout


def test_two_photos_are_compared(installed: Installed, tmp_path: Path) -> None:
    for folder, build_network in {"recogniser": build_recogniser, "detector": build_detector}.items():
        (tmp_path / folder).mkdir()
        build_network(tmp_path / folder)
    for name, photo in {"ada": photo_of(1), "again": photo_of(1, noise=3), "bob": photo_of(2)}.items():
        (tmp_path / f"{name}.png").write_bytes(photo)
    bundles = ("--recognizer", tmp_path / "recogniser", "--detector", tmp_path / "detector")
    same = installed.run("sameface", "verify", tmp_path / "ada.png", tmp_path / "again.png", *bundles)
    assert (same.returncode, same.stderr) == (0, "")
    assert "the same person" in same.stdout
    other = installed.run("sameface", "verify", tmp_path / "ada.png", tmp_path / "bob.png", *bundles)
    assert (other.returncode, other.stderr) == (1, "")
