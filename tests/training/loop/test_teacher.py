"""A teacher's embeddings are the server's own, computed once, and a network comes closer to them."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from sameface.model.bundles.bundle import load_bundle
from sameface.model.data_folder import DataFolder
from sameface.model.errors import BundleRefused
from sameface.model.observer import ignore_progress
from sameface.model.photo.embed import Embedder
from sameface.model.runtime.session_pool import open_sessions
from sameface.training.data.face_set import NOBODY, open_faces
from sameface.training.errors import RecipeRefused
from sameface.training.loop import teacher
from sameface.training.loop.teacher import find_teacher, load_targets
from sameface.training.loop.train import train
from sameface.training.losses.total_loss import Objective, imitate
from tests.training.runs import ALONE, thin_recipe


def test_targets_are_what_the_server_would_embed(tmp_path: Path, data: Path, drawn_faces: Path) -> None:
    bundle = load_bundle(data / "models" / "recogniser")
    faces = open_faces(drawn_faces)
    targets = load_targets(faces, bundle, DataFolder(tmp_path), ignore_progress)
    embedder = Embedder(bundle, open_sessions(bundle, "cpu", tmp_path / "cache"))
    expected = [embedder.embed([faces.read(place)[0]])[0].values for place in range(len(faces))]
    np.testing.assert_allclose(targets, expected, rtol=1e-5, atol=1e-6)


def test_targets_are_computed_once(
    tmp_path: Path, data: Path, drawn_faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, faces = load_bundle(data / "models" / "recogniser"), open_faces(drawn_faces)
    first = load_targets(faces, bundle, DataFolder(tmp_path), ignore_progress)
    monkeypatch.setattr(teacher, "compute_targets", None)  # asked again, it would fail
    assert np.array_equal(load_targets(faces, bundle, DataFolder(tmp_path), ignore_progress), first)
    (kept,) = (tmp_path / "cache").glob("teacher-*.npy")
    kept.write_bytes(b"damaged")
    with pytest.raises(RecipeRefused, match="delete it"):
        load_targets(faces, bundle, DataFolder(tmp_path), ignore_progress)


def test_the_teacher_is_closed_once_it_has_embedded_all(
    tmp_path: Path, data: Path, drawn_faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = [], Embedder.close
    monkeypatch.setattr(Embedder, "close", lambda self: (closed.append(self.identity), close(self)))
    bundle = load_bundle(data / "models" / "recogniser")
    load_targets(open_faces(drawn_faces), bundle, DataFolder(tmp_path), ignore_progress)
    assert closed == [bundle.identity]


BESIDE = ", head = 'cosface', head_weight = 0.1"


@pytest.mark.parametrize(("head", "blends"), [("", 0), (BESIDE, 0), (BESIDE, 2)])
def test_a_network_learns_from_its_teacher(
    tmp_path: Path, data: Path, drawn_faces: Path, head: str, blends: int
) -> None:
    bundle = load_bundle(data / "models" / "recogniser")
    recipe = thin_recipe(
        tmp_path,
        drawn_faces,
        f'teacher = "{bundle.folder}"',
        f"backbone.dimension = {bundle.contract.dimension}",
        f"loss = {{ teacher_weight = 8{head} }}",
        f"data.blends = {blends}",
        "schedule.images = 1280",
    )
    train(recipe, tmp_path / "run", DataFolder(tmp_path))
    header, *lines = (tmp_path / "run" / "log.csv").read_text().splitlines()
    column = header.split(",").index("teacher")
    losses = [float(line.split(",")[column]) for line in lines]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("labels", [[0, NOBODY, 1, NOBODY], [NOBODY] * 4])
def test_a_head_passes_over_blends(tmp_path: Path, drawn_faces: Path, labels: list[int]) -> None:
    changes = ("teacher = 'sface'", "data.blends = 1", "loss = { head = 'cosface', center_weight = 0.1 }")
    objective = Objective(thin_recipe(tmp_path, drawn_faces, *changes), 12, ALONE)
    embeddings, targets = torch.randn(2, 4, 16)
    somebody = torch.tensor(labels) != NOBODY
    losses = objective(embeddings, torch.tensor(labels), targets)
    assert losses.total.isfinite()
    assert losses.parts["teacher"] == 8 * imitate(embeddings, targets)
    assert losses.parts.keys() == ({"center", "teacher", "head"} if somebody.any() else {"teacher"})
    if somebody.any():
        expected = objective.head(embeddings[somebody], torch.tensor(labels)[somebody])
        assert losses.parts["head"] == pytest.approx(expected.item())


def test_a_network_must_be_as_wide_as_its_teacher(tmp_path: Path, data: Path, drawn_faces: Path) -> None:
    folder = data / "models" / "recogniser"
    recipe = thin_recipe(tmp_path, drawn_faces, f'teacher = "{folder}"', "backbone.dimension = 5")
    with pytest.raises(RecipeRefused, match=r"backbone\.dimension must be the teacher's"):
        train(recipe, tmp_path / "run", DataFolder(tmp_path))


def test_a_teacher_that_is_not_there_is_named(tmp_path: Path, data: Path) -> None:
    with pytest.raises(BundleRefused, match="sface-2021dec"):
        find_teacher("sface", DataFolder(tmp_path))
    with pytest.raises(BundleRefused, match="a recogniser is needed"):
        find_teacher(str(data / "models" / "detector"), DataFolder(tmp_path))
