"""Builds what users install, and installs each kind of it into a fresh environment without torch."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLDEST, NEWER = "3.11", ("3.12", "3.13")
# Wheels of the dependencies: a compiler's troubles are not those of this package.
INSTALL = ("install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--no-compile")


class CommandFailed(Exception):
    """A command that had to work did not; the text is all that it said."""


class CannotInstall(Exception):
    """Here, and through no fault of the package."""


@dataclass(frozen=True, slots=True)
class Packages:
    """What was built of this checkout."""

    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with sameface in it, used from a folder that is not the checkout."""

    environment: Path
    elsewhere: Path

    def run(self, command: str, *words: object) -> "subprocess.CompletedProcess[str]":
        """Run a command of the environment, with none of the developer's own settings."""
        own = ("PYTHON", "SAMEFACE_", "VIRTUAL_ENV")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return subprocess.run(
            [self.environment / "bin" / command, *map(str, words)],
            capture_output=True,
            text=True,
            cwd=self.elsewhere,
            env=variables | {"COLUMNS": "200", "SAMEFACE_DATA": str(self.elsewhere / "data")},
            check=False,
        )


def run_command(*words: object, cwd: Path = ROOT, **variables: str) -> str:
    """What a command prints, or CommandFailed."""
    environment = os.environ | variables
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )
    if done.returncode:
        raise CommandFailed(done.stdout + done.stderr)
    return done.stdout


def list_checkout(*folders: str) -> set[str]:
    """The files and links of the checkout, or of some folders in it, that git knows or would add."""
    kinds = ("--cached", "--others", "--exclude-standard")
    listed = run_command("git", "ls-files", "-z", *kinds, "--", *folders).split("\0")
    return {name for name in listed if name and os.path.lexists(ROOT / name)}


def build(source: Path, target: str, folder: Path) -> Path:
    """A wheel or an sdist of a source tree, in a folder of its own."""
    words = ("build", "--target", target, "--directory", folder)
    run_command(sys.executable, "-m", "hatchling", *words, cwd=source)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    folder = tmp_path_factory.mktemp("packages")
    sdist = build(ROOT, "sdist", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    return Packages(
        wheel=build(ROOT, "wheel", folder / "wheel"),
        sdist=sdist,
        wheel_of_sdist=build(unpacked, "wheel", folder / "wheel_of_sdist"),
    )


def copy_checkout(folder: Path) -> Path:
    """The checkout with its links as links: installed in place, it is not the developer's own."""
    for name in list_checkout():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def find_python(version: str) -> str:
    """The interpreter of a version, which has to answer: a shim may have nothing behind it."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    code = "import sys; print(sys.executable)"
    try:  # pyenv's shims start the version that the variable names; nobody else reads it
        return run_command(f"python{version}", "-c", code, PYENV_VERSION=version).strip()
    except (OSError, CommandFailed) as error:
        raise CannotInstall(f"there is no Python {version} here") from error


def install(kind: str, version: str, packages: Packages, folder: Path) -> Installed:
    """sameface with the extra `cpu` in a fresh environment."""
    python = find_python(version)
    environment, elsewhere = folder / "environment", folder / "elsewhere"
    elsewhere.mkdir()
    run_command(python, "-m", "venv", "--without-pip", environment)
    if kind == "editable":
        what = ["--editable", f"{copy_checkout(folder / 'checkout')}[cpu]"]
    else:
        what = [f"{getattr(packages, kind)}[cpu]"]
    try:
        run_command(sys.executable, "-m", "pip", "--python", environment, *INSTALL, *what)
    except CommandFailed as error:
        if version in NEWER and "No matching distribution found" in str(error):
            reason = str(error).strip().splitlines()[-1]
            raise CannotInstall(f"a dependency has no wheel for Python {version}: {reason}") from error
        raise
    return Installed(environment, elsewhere)


def in_one_process(kind: str, version: str) -> object:
    """The parameter of one environment; its tests share a process, and so the environment."""
    name = f"{kind}-{version}"
    return pytest.param((kind, version), id=name, marks=pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def environments() -> Iterator[dict[tuple[str, str], Installed | CannotInstall]]:
    """Those that were made, each once; a parametrised fixture would make one again after any other."""
    made: dict[tuple[str, str], Installed | CannotInstall] = {}
    yield made
    for installed in made.values():
        if isinstance(installed, Installed):
            shutil.rmtree(installed.environment)  # hundreds of megabytes, which pytest would keep


@pytest.fixture(
    params=[
        *(in_one_process(kind, OLDEST) for kind in ("wheel", "sdist", "editable")),
        *(in_one_process("wheel", version) for version in NEWER),
    ]
)
def installed(
    request: pytest.FixtureRequest,
    environments: dict[tuple[str, str], Installed | CannotInstall],
    packages: Packages,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    """What a user has who installed one kind of package under one version of Python."""
    if request.param not in environments:
        try:
            made = install(*request.param, packages, tmp_path_factory.mktemp("installed"))
        except CannotInstall as reason:
            made = reason
        environments[request.param] = made
    found = environments[request.param]
    if isinstance(found, CannotInstall):
        pytest.skip(str(found))
    return found
