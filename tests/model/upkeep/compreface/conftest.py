"""A CompreFace to import, and a gallery of the tiny networks to import it into."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sameface
from tests.conftest import Serve
from tests.model.upkeep.compreface.foreign import ForeignDatabase
from tests.postgres_server import database_of, the_server


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[ForeignDatabase]:
    """CompreFace's database, empty but for its tables."""
    database = ForeignDatabase(the_server().url_of(tmp_path / "foreign"))
    with database.connection:
        yield database


@pytest.fixture(scope="module")
def speaker(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that speaks CompreFace's REST API: one of ours."""
    with serve(data=tmp_path_factory.mktemp("compreface"), compatible="compreface") as client:
        yield client


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data folder to import into."""
    return tmp_path / "home"


@pytest.fixture
def faces(data: Path, home: Path) -> Iterator[sameface.Faces]:
    """What is in that folder, with the tiny networks."""
    models = data / "models"
    networks = {"recognizer": models / "recogniser", "detector": models / "detector"}
    with sameface.open(home, database=database_of(home), **networks) as opened:
        yield opened
