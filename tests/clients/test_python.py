"""Python clients that are generated from the contract work against a real server."""

import json
import shutil
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, OPENAPI, Run
from tests.conftest import Serve


@pytest.mark.timeout(600)
def test_openapi_python_client_writes_a_client_without_a_warning(
    in_python: Run, serve: Serve, tmp_path: Path, photos: tuple[Path, Path]
) -> None:
    settings = ("--path", OPENAPI, "--config", HERE / "openapi-python-client.yml", "--meta", "none")
    said = in_python("openapi-python-client", "generate", *settings, "--output-path", tmp_path / "written")
    assert "warning" not in said.lower(), said
    answers = use(in_python, "use_openapi_python_client.py", tmp_path, serve, photos)
    assert answers == {
        "same_person": True,
        "enrolled": ["ada", 2],
        "match": "Ada",
        "problem": [404, "collection_not_found"],
        "batch": ["1"],
        "deleted": 204,
    }


@pytest.mark.timeout(600)
def test_openapi_generator_writes_a_client_that_works(
    in_python: Run, serve: Serve, tmp_path: Path, photos: tuple[Path, Path]
) -> None:
    if not shutil.which("java"):
        pytest.skip("there is no Java here")
    package = ("--package-name", "written_too", "-o", tmp_path)
    in_python("openapi-generator-cli", "generate", "-g", "python", "-i", OPENAPI, *package)
    answers = use(in_python, "use_openapi_generator.py", tmp_path, serve, photos)
    assert answers == {
        "same_person": True,
        "enrolled": ["ada", 2],
        "match": "Ada",
        "batch": ["1"],
        "listed": [{"a": 1}],
        "problem": ["Problem", 404, "person_not_found"],
    }


def use(in_python: Run, script: str, folder: Path, serve: Serve, photos: tuple[Path, Path]) -> dict:
    """What a program says that uses the client in a folder."""
    shutil.copy(HERE / script, folder)
    with serve() as client:
        return json.loads(in_python("python", folder / script, client.base_url, *photos))
