"""The wheel of our own client works in an environment that has nothing but httpx, and types a program."""

import json
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, run_command
from tests.conftest import Serve

CLIENT = HERE.parents[1] / "clients" / "python"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the client's wheel and what it needs."""
    folder = tmp_path_factory.mktemp("ours")
    build = ("build", "--target", "wheel", "--directory", folder / "wheel")
    run_command(sys.executable, "-m", "hatchling", *build, cwd=CLIENT)
    [wheel] = (folder / "wheel").iterdir()
    environment = folder / "environment"
    run_command(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    install = ("install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", wheel)
    run_command(sys.executable, "-m", "pip", "--python", environment, *install, cwd=folder)
    return environment


@pytest.mark.timeout(600)
def test_the_wheel_works_with_httpx_alone(
    environment: Path, serve: Serve, photos: tuple[Path, Path], tmp_path: Path
) -> None:
    with serve(data=tmp_path) as client:
        program = HERE / "use_sameface_client.py"
        said = run_command(environment / "bin" / "python", program, client.base_url, *photos, cwd=tmp_path)
    assert json.loads(said) == {
        "same_person": True,
        "enrolled": ["ada", 2],
        "match": "Ada",
        "batch": ["1", "2"],
        "problem": ["PersonNotFound", 404, "person_not_found"],
        "tasks": [True],
        "others": [],
    }


@pytest.mark.timeout(600)
def test_a_program_that_uses_it_passes_strict_types_and_a_wrong_one_does_not(
    environment: Path, tmp_path: Path
) -> None:
    strict = ("-m", "mypy", "--strict", "--python-executable", environment / "bin" / "python")
    run_command(sys.executable, *strict, HERE / "use_sameface_client.py", cwd=tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import sameface_client\n"
        "faces = sameface_client.connect()\n"
        "faces.verify('one.jpg', 'another.jpg', target='low')\n"
        "faces.verify('one.jpg', 'another.jpg').same_persn\n"
        "faces.collection('staff').identify('one.jpg', faces='nobody')\n"
    )
    with pytest.raises(Exception, match="Found 3 errors"):
        run_command(sys.executable, *strict, wrong, cwd=tmp_path)
