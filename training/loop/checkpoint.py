"""Checkpoints: replaced atomically, and loaded only by a run of the same architecture."""

import logging
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from sameface.model.files import replacing
from sameface.training.errors import CheckpointRefused

log = logging.getLogger("sameface.training")

VERSION = 1
LAST = "last.pt"
BEST = "best.pt"


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint at `path` atomically; if writing fails, the old one stays."""
    try:
        with replacing(path) as file:
            torch.save({"version": VERSION, **state}, file)
    except (OSError, RuntimeError) as error:  # torch's writer turns an OSError into a RuntimeError
        raise CheckpointRefused(
            f"{path} cannot be written ({error}); the last one is still there: make room, resume."
        ) from error


def load_checkpoint(path: Path, architecture: dict[str, Any]) -> dict[str, Any]:
    """Load a checkpoint that agrees with `architecture`; only tensors and plain values are read, no code."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointRefused(f"{path} cannot be read: {error.strerror}.") from error
    except (pickle.UnpicklingError, RuntimeError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise CheckpointRefused(f"{path} is no checkpoint, or damaged.") from error
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise CheckpointRefused(f"{path} is no checkpoint of this version.")
    different = [key for key, value in architecture.items() if state["architecture"].get(key) != value]
    if different:
        found = ", ".join(f"{key} {state['architecture'].get(key)!r}" for key in different)
        asked = ", ".join(f"{key} {architecture[key]!r}" for key in different)
        raise CheckpointRefused(f"{path} has {found}, and the recipe asks for {asked}: use another folder.")
    return state
