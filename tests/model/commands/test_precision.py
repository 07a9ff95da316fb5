"""Commands choose the precision of networks, and the faces that prove it, as the server does."""

from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sameface.cli import ROOMS
from sameface.model.commands.console.options import pipeline_for
from sameface.model.commands.photos import app
from sameface.model.data_folder import DataFolder
from sameface.model.errors import FolderRefused
from sameface.model.runtime import prepare_graph
from sameface.model.runtime.precision.choice import Offer, Precision
from tests.pictures import photo_of


@pytest.mark.parametrize("room", ROOMS)
def test_whoever_takes_a_precision_takes_the_faces_that_prove_it(room: str) -> None:
    group = typer.main.get_group(import_module(ROOMS[room]).app)
    for command in group.commands.values():
        variables = {option.envvar for option in command.params}
        assert ("SAMEFACE_PRECISION" in variables) == ("SAMEFACE_PRECISION_FACES" in variables)


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_command_proves_a_precision_on_the_faces_that_the_server_takes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_flag: bool
) -> None:
    monkeypatch.setattr(prepare_graph, "find_offer", lambda *_: Offer("bf16"))
    photo, own, models = tmp_path / "ada.png", tmp_path / "own", data / "models"
    photo.write_bytes(photo_of(1))
    own.mkdir()
    words = ["embed", photo, "--data", tmp_path, "--recognizer", models / "recogniser"]
    words += ["--detector", models / "detector", *(["--precision-faces", own] if by_flag else [])]
    variables = {} if by_flag else {"SAMEFACE_PRECISION_FACES": str(own)}
    with pytest.raises(FolderRefused, match="own has 0 crops"):
        CliRunner().invoke(app, [str(word) for word in words], env=variables, catch_exceptions=False)


def test_commands_that_measure_do_so_too(data: Path, tmp_path: Path) -> None:
    models = data / "models"
    chosen = models / "recogniser", models / "detector"
    opening = pipeline_for(DataFolder(tmp_path), *chosen, "cpu", "exact", Path("~/own"))
    with opening as pipeline:
        assert pipeline.options.precision == Precision("exact", Path("~/own").expanduser())
