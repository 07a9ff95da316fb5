"""Two processes under torchrun are one with the doubled batch."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from sameface.model.data_folder import DataFolder
from sameface.training.loop.checkpoint import load_checkpoint, save_checkpoint
from sameface.training.loop.train import train
from sameface.training.recipe import read_recipe
from tests.training.runs import PLAIN, THIN, learn


def run_two(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Two processes on this machine, as a user would start them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    addresses = ("--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}")
    command = (sys.executable, "-m", "torch.distributed.run", *addresses, "-m", module, *arguments)
    alone = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=alone, capture_output=True, text=True, timeout=110, check=False)


LOSSES = {
    "cosface": "loss = { head = 'cosface' }",
    "more": "loss = { head = 'softmax', focal_gamma = 2, pair = 'triplet', people = 4, center_weight = 0.1 }",
}


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory, drawn_faces: Path) -> Path:
    """A folder of the recipes, and of what two processes made of them."""
    folder = tmp_path_factory.mktemp("together")
    for name, loss in LOSSES.items():
        (folder / f"{name}.toml").write_text("\n".join((loss, *PLAIN, THIN.format(faces=drawn_faces))))
    files = [str(folder / f"{name}.toml") for name in LOSSES]
    done = run_two("tests.training.two_processes", str(folder), *files)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_learn_as_one_with_the_doubled_batch(recipes: Path, name: str) -> None:
    recipe, joined = read_recipe(recipes / f"{name}.toml"), load_checkpoint(recipes / f"{name}.pt", {})
    together = json.loads(joined["told"])
    learner, losses = learn(recipe)
    assert together["processes"] == 2
    assert together["losses"] == pytest.approx(losses, abs=1e-4)
    alone = learner.state()
    weights = joined["objective"]["head.head.weight"], alone["objective"]["head.head.weight"]
    assert weights[0].shape == weights[1].shape
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)


def test_a_run_of_two_processes_is_finished_by_one(tmp_path: Path, drawn_faces: Path) -> None:
    recipe = tmp_path / "thin.toml"
    recipe.write_text(THIN.format(faces=drawn_faces))
    arguments = ("--out", str(tmp_path / "run"), "--data", str(tmp_path), "--set", "schedule.images = 160")
    first = run_two("sameface", "train", str(recipe), *arguments)
    assert first.returncode == 0, first.stderr
    state = load_checkpoint(tmp_path / "run" / "last.pt", {})
    assert state["seen"] == 160
    state["recipe"]["schedule"]["images"] = 320  # as if it had been stopped halfway
    save_checkpoint(tmp_path / "run" / "last.pt", state)
    assert train(read_recipe(recipe), tmp_path / "run", DataFolder(tmp_path), resume=True).images == 320
