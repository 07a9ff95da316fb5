"""`sameface train` and `sameface export` as somebody at a terminal meets them."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from sameface.cli import main
from sameface.model.bundles.bundle import load_bundle
from sameface.training.loop.checkpoint import load_checkpoint
from tests.training.runs import THIN


@pytest.fixture
def sameface(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: its exit code, and what it printed to both sides."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sameface", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


def test_from_a_recipe_to_a_bundle(tmp_path: Path, drawn_faces: Path, sameface) -> None:
    recipe, run, bundle = tmp_path / "thin.toml", tmp_path / "run", tmp_path / "bundle"
    recipe.write_text(THIN.format(faces=drawn_faces))
    code, printed, _ = sameface("train", recipe, "--out", run, "--data", tmp_path, "--json")
    assert (code, json.loads(printed)["images"]) == (0, 320)
    code, printed, _ = sameface("bundle", "export", run / "last.pt", "--out", bundle, "--data", tmp_path)
    assert code == 0
    assert "thin is in" in printed
    assert load_bundle(bundle).contract.name == "thin"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_keeps_a_checkpoint_first(
    tmp_path: Path, drawn_faces: Path, number: signal.Signals
) -> None:
    recipe, run = tmp_path / "thin.toml", tmp_path / "run"
    recipe.write_text(THIN.format(faces=drawn_faces))
    endless = ("--set", "schedule.images = 100_000_000", "--set", "schedule.save = 100_000_000")
    command = (sys.executable, "-m", "sameface", "train", str(recipe), "--out", str(run), *endless)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and "\n20," not in read(run / "log.csv"):
            time.sleep(0.1)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Go on with --resume" in said
    assert load_checkpoint(run / "last.pt", {})["step"] >= 20


def read(file: Path) -> str:
    return file.read_text().replace("\r", "") if file.exists() else ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing.toml",), "recipe_refused"),
        (("thin.toml", "--set", "loss.head=cosine"), "loss.head is one of softmax, modified_softmax"),
        (
            ("thin.toml", "--set", "loss={head='cosface',head_options={margin=2.5}}"),
            "loss.head_options of cosface: margin is at",
        ),
        (("thin.toml", "--set", "surprise = 1"), "no such key: surprise"),
        (("thin.toml", "--set", "data.path = 'nowhere'"), "dataset_refused"),
        (("thin.toml", "--set", "no toml"), "--set takes KEY=VALUE"),
        (("thin.toml", "--resume"), "checkpoint_refused"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(
    tmp_path: Path, drawn_faces: Path, arguments: tuple[str, ...], said: str, sameface
) -> None:
    (tmp_path / "thin.toml").write_text(THIN.format(faces=drawn_faces))
    recipe, *others = arguments
    code, _, error = sameface("train", tmp_path / recipe, "--out", tmp_path / "run", *others)
    assert code == 2
    assert said in error
    assert not (tmp_path / "run" / "last.pt").exists()
