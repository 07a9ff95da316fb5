"""Generators of clients in environments of their own, and drawn photos as files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pictures import photo_of

HERE = Path(__file__).parent
OPENAPI = HERE.parents[1] / "openapi.json"

Run = Callable[..., str]


class CommandFailed(Exception):
    """A command that had to work did not; the text is all that it said."""


def run_command(*words: object, cwd: Path, path: Path | None = None, **variables: str) -> str:
    """What a command prints, to which its errors are added; it has to succeed."""
    search = f"{path}{os.pathsep}{os.environ['PATH']}" if path else os.environ["PATH"]
    done = subprocess.run(
        list(map(str, words)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env=os.environ | {"PATH": search} | variables,
        check=False,
    )
    if done.returncode:
        raise CommandFailed(done.stdout)
    return done.stdout


@pytest.fixture(scope="session")
def in_python(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command of a fresh environment with the generators that are written in Python."""
    return make_environment(tmp_path_factory.mktemp("python"), HERE / "requirements.txt")


@pytest.fixture(scope="session")
def with_compreface(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command of a fresh environment with CompreFace's own client."""
    return make_environment(tmp_path_factory.mktemp("compreface"), HERE / "compreface.txt")


@pytest.fixture(scope="session")
def with_boto3(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command of a fresh environment with Amazon's own client."""
    return make_environment(tmp_path_factory.mktemp("boto3"), HERE / "rekognition.txt")


def make_environment(folder: Path, listed: Path) -> Run:
    """Runs a command of a fresh environment with the packages that a file lists."""
    environment = folder / "environment"
    run_command(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    install = ("install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--no-compile")
    run_command(sys.executable, "-m", "pip", "--python", environment, *install, "-r", listed, cwd=folder)

    def run(command: str, *words: object) -> str:
        return run_command(environment / "bin" / command, *words, cwd=folder, path=environment / "bin")

    return run


@pytest.fixture(scope="session")
def in_node(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command of node in a folder with what makes types of the contract."""
    if not shutil.which("npm"):
        pytest.skip("there is no node here")
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(HERE / "package.json", folder)
    try:
        run_command("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
    except CommandFailed as error:
        pytest.skip(f"npm cannot install here: {error}")

    def run(command: str, *words: object) -> str:
        return run_command(command, *words, cwd=folder, path=folder / "node_modules" / ".bin")

    return run


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two photos of one person."""
    folder = tmp_path_factory.mktemp("photos")
    paths = folder / "one.png", folder / "another.png"
    for noise, path in enumerate(paths):
        path.write_bytes(photo_of(1, noise=noise))
    return paths
