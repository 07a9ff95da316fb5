"""Checkpoints: whole or not there, and of this run or refused."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from sameface.training.errors import CheckpointRefused
from sameface.training.loop.checkpoint import load_checkpoint, save_checkpoint

SMALL = {"backbone": "residual", "dimension": 128}


def save(path: Path, value: float = 1.0, **architecture: object) -> None:
    state = {"weights": {"a": torch.full((1000,), value)}, "step": 3}
    save_checkpoint(path, {"architecture": {**SMALL, **architecture}, **state})


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path / "last.pt", 2.0)
    state = load_checkpoint(tmp_path / "last.pt", SMALL)
    assert state["step"] == 3
    assert torch.equal(state["weights"]["a"], torch.full((1000,), 2.0))


def test_a_checkpoint_of_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path / "last.pt", backbone="iresnet50")
    with pytest.raises(
        CheckpointRefused, match="has backbone 'iresnet50', and the recipe asks for backbone 'residual'"
    ):
        load_checkpoint(tmp_path / "last.pt", SMALL)


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "last.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointRefused, match=r"last\.pt"):
        load_checkpoint(path, SMALL)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "last.pt")
    content = (tmp_path / "last.pt").read_bytes()
    (tmp_path / "last.pt").write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointRefused):
        load_checkpoint(tmp_path / "last.pt", SMALL)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tests.training.loop.test_checkpoint import save
from sameface.training.errors import CheckpointRefused
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    save(Path(sys.argv[1]), 9.0)
except CheckpointRefused as error:
    print(error.detail)
"""


def test_a_disk_that_is_full_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    """With a limit on the size of files in the place of a full disk."""
    save(tmp_path / "last.pt", 1.0)
    said = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "last.pt")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "make room" in said
    assert load_checkpoint(tmp_path / "last.pt", SMALL)["weights"]["a"][0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
