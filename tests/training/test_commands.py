"""`sameface train` and `sameface export` as somebody at a terminal meets them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from sameface import main
from tests.training.runs import THIN
from training.checkpoint import load_checkpoint


def sameface(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "sameface", *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


def test_from_a_recipe_to_a_bundle(tmp_path: Path, drawn_faces: Path) -> None:
    recipe, run, bundle = tmp_path / "thin.toml", tmp_path / "run", tmp_path / "bundle"
    recipe.write_text(THIN.format(faces=drawn_faces))
    trained = sameface("train", str(recipe), "--out", str(run), "--data", str(tmp_path), "--json")
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["images"] == 320
    exported = sameface("export", str(run / "last.pt"), "--out", str(bundle), "--data", str(tmp_path))
    assert exported.returncode == 0, exported.stderr
    assert (bundle / "bundle.json").exists()
    assert "thin is in" in exported.stdout


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
        (("thin.toml", "--set", "loss.head = 'cosine'"), "known are softmax, modified_softmax"),
        (("thin.toml", "--set", "surprise = 1"), "no such key: surprise"),
        (("thin.toml", "--set", "data.path = 'nowhere'"), "dataset_refused"),
        (("thin.toml", "--set", "no toml"), "is not TOML"),
        (("thin.toml", "--resume"), "checkpoint_refused"),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence(
    tmp_path: Path,
    drawn_faces: Path,
    arguments: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "thin.toml").write_text(THIN.format(faces=drawn_faces))
    recipe, *others = arguments
    command = ["sameface", "train", str(tmp_path / recipe), "--out", str(tmp_path / "run"), *others]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run" / "last.pt").exists()
