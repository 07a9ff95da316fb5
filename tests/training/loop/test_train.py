"""The loop on drawn faces: it learns, it stops when asked, and it goes on as if it had not stopped."""

import csv
import shutil
import signal
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from sameface.model.data_folder import DataFolder
from sameface.training.errors import CheckpointRefused, RecipeRefused, TrainingDiverged
from sameface.training.loop.changed_recipe import find_changes
from sameface.training.loop.checkpoint import BEST, LAST, load_checkpoint
from sameface.training.loop.learner import Learner, choose_precision
from sameface.training.loop.learning_rate import learning_rate_at
from sameface.training.loop.run_log import CSV_NAME
from sameface.training.loop.train import train
from tests.training.conftest import PEOPLE
from tests.training.runs import PLAIN, flat_weights, learn, thin_recipe


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / CSV_NAME).open(newline="") as file:
        return list(csv.DictReader(file))


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGTERM) -> None:
    """Send this process a real signal in the middle of a step."""
    whole = Learner.learn

    def interrupted(self, batches, at):
        if at == step:
            signal.raise_signal(number)
        return whole(self, batches, at)

    monkeypatch.setattr(Learner, "learn", interrupted)


def test_a_run_learns_and_writes_down_how(tmp_path: Path, drawn_faces: Path, drawn_pairs: Path) -> None:
    measured = f'evaluation = {{ pairs = "{drawn_pairs}", images = "{drawn_faces}", every = 320 }}'
    recipe = thin_recipe(tmp_path, drawn_faces, "schedule.images = 1280", "loss.head = 'softmax'", measured)
    outcome = train(recipe, tmp_path / "run", DataFolder(tmp_path))
    state = load_checkpoint(outcome.checkpoint, recipe.architecture())
    losses = [float(row["loss"]) for row in rows(tmp_path / "run") if row["loss"]]
    looks = [float(row["accuracy"]) for row in rows(tmp_path / "run") if row["accuracy"]]
    assert losses[-1] < 0.7 * losses[0]
    assert len(looks) == 4
    assert looks[-1] == pytest.approx(outcome.accuracy, rel=1e-5)
    assert outcome.best_accuracy == pytest.approx(max(looks), rel=1e-5)
    assert max(looks) > 0.6
    assert (outcome.images, outcome.stopped_by) == (1280, None)
    assert (state["step"], state["seen"], state["data"]["identities"]) == (80, 1280, PEOPLE)
    assert (tmp_path / "run" / BEST).exists()
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_the_first_line_of_a_run_says_what_is_trained_on_and_where(
    tmp_path: Path, drawn_faces: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = thin_recipe(tmp_path, drawn_faces, "schedule.images = 32")
    with caplog.at_level("INFO", "sameface.training"):
        train(recipe, tmp_path / "run", DataFolder(tmp_path))
        train(recipe, tmp_path / "run", DataFolder(tmp_path), resume=True)
    where = "the CPU" if not torch.cuda.is_available() else torch.cuda.get_device_name(0)
    assert [record.getMessage() for record in caplog.records] == [
        f"thin: 48 images of 12 identities, 2 steps of 16 images, on {where}",
        f"thin: 48 images of 12 identities, 2 steps of 16 images from step 2 on, on {where}",
    ]


RECIPES = {
    "cosface, averaged, a sample of the classes": (
        "loss = { head = 'cosface', sample = 0.5, head_options = { warm_up = 15 } }",
        "optimiser = { average = 0.9 }",
    ),
    "sphereface by AdamW, two batches a step": (
        "loss = { head = 'sphereface', focal_gamma = 1 }",
        "optimiser = { name = 'adamw', rate = 1e-3, accumulate = 2 }",
        "schedule = { batch = 8, kind = 'step' }",
    ),
    "triplets with centers": ("loss = { pair = 'triplet', people = 4, center_weight = 0.01 }",),
}


@pytest.mark.parametrize("changes", RECIPES.values(), ids=RECIPES)
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(
    tmp_path: Path, drawn_faces: Path, monkeypatch: pytest.MonkeyPatch, changes: tuple[str, ...]
) -> None:
    recipe = thin_recipe(tmp_path, drawn_faces, *changes)
    whole = train(recipe, tmp_path / "whole", DataFolder(tmp_path))
    with monkeypatch.context() as patch:
        stop_at(6, patch)
        broken = train(recipe, tmp_path / "broken", DataFolder(tmp_path))
    assert (broken.images, broken.stopped_by) == (7 * recipe.images_per_step, signal.SIGTERM)
    resumed = train(recipe, tmp_path / "broken", DataFolder(tmp_path), resume=True)
    states = [load_checkpoint(outcome.checkpoint, {}) for outcome in (whole, resumed)]
    assert torch.equal(flat_weights(states[0]), flat_weights(states[1]))
    assert states[0]["last_losses"] == states[1]["last_losses"]


def test_a_log_that_ran_ahead_of_its_checkpoint_is_cut(tmp_path: Path, drawn_faces: Path) -> None:
    recipe = thin_recipe(tmp_path, drawn_faces)
    train(recipe, tmp_path / "run", DataFolder(tmp_path))
    before = rows(tmp_path / "run")
    with (tmp_path / "run" / CSV_NAME).open("a") as file:
        file.write("40,640,1,1,,,,0.1,1,100,\r\n")
    train(recipe, tmp_path / "run", DataFolder(tmp_path), resume=True)
    assert rows(tmp_path / "run") == before


def test_a_run_is_not_overwritten(tmp_path: Path, drawn_faces: Path) -> None:
    recipe = thin_recipe(tmp_path, drawn_faces, "schedule.images = 32")
    train(recipe, tmp_path / "run", DataFolder(tmp_path))
    with pytest.raises(CheckpointRefused, match="--resume"):
        train(recipe, tmp_path / "run", DataFolder(tmp_path))


@pytest.mark.parametrize("change", ["backbone.dimension = 8", "loss.head = 'arcface'"])
def test_only_a_run_of_the_same_shape_is_resumed(tmp_path: Path, drawn_faces: Path, change: str) -> None:
    train(thin_recipe(tmp_path, drawn_faces, "schedule.images = 32"), tmp_path / "run", DataFolder(tmp_path))
    changed = thin_recipe(tmp_path, drawn_faces, "schedule.images = 64", change)
    with pytest.raises(CheckpointRefused, match="the recipe asks for"):
        train(changed, tmp_path / "run", DataFolder(tmp_path), resume=True)


def test_a_changed_recipe_is_not_resumed_and_every_change_is_named(tmp_path: Path, drawn_faces: Path) -> None:
    before = thin_recipe(
        tmp_path,
        drawn_faces,
        "schedule.images = 32",
        "loss = { head = 'cosface', head_options = { margin = 0.3 } }",
    )
    kept = train(before, tmp_path / "run", DataFolder(tmp_path)).checkpoint.read_bytes()
    changes = (
        "schedule.images = 64",
        "optimiser.rate = 0.05",
        "loss = { head = 'cosface', head_options = { scale = 20 } }",
    )
    with pytest.raises(CheckpointRefused) as refusal:
        train(
            thin_recipe(tmp_path, drawn_faces, *changes), tmp_path / "run", DataFolder(tmp_path), resume=True
        )
    for change in (
        "loss.head_options.margin was 0.3 and is not given",
        "loss.head_options.scale was not given and is 20",
        "optimiser.rate was 0.1 and is 0.05",
        "schedule.images was 32 and is 64",
        "another --out",
    ):
        assert change in refusal.value.detail
    assert (tmp_path / "run" / LAST).read_bytes() == kept


def test_what_does_not_touch_the_weights_may_change_when_a_run_is_resumed(
    tmp_path: Path, drawn_faces: Path, drawn_pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(6, patch)
        train(thin_recipe(tmp_path, drawn_faces), tmp_path / "run", DataFolder(tmp_path))
    moved = drawn_faces.rename(drawn_faces.with_name("moved"))
    try:
        changes = (
            "name = 'other'",
            "data.memory = 0",
            "schedule.save = 160",
            f"evaluation = {{ pairs = '{moved / drawn_pairs.name}', images = '{moved}' }}",
        )
        recipe = thin_recipe(tmp_path, moved, *changes)
        outcome = train(recipe, tmp_path / "run", DataFolder(tmp_path), resume=True)
    finally:
        moved.rename(drawn_faces)
    assert outcome.images == 320
    assert outcome.best_accuracy is not None


def test_other_faces_are_no_more_resumed_than_another_rate(tmp_path: Path, drawn_faces: Path) -> None:
    train(thin_recipe(tmp_path, drawn_faces, "schedule.images = 32"), tmp_path / "run", DataFolder(tmp_path))
    others = shutil.copytree(drawn_faces, tmp_path / "others")
    (others / "0000" / "0000_0003.png").unlink()
    changed = thin_recipe(tmp_path, others, "schedule.images = 32")
    with pytest.raises(CheckpointRefused, match=r"data\.path was"):
        train(changed, tmp_path / "run", DataFolder(tmp_path), resume=True)


def test_a_key_that_an_older_version_did_not_know_is_no_change(tmp_path: Path, drawn_faces: Path) -> None:
    recipe = thin_recipe(tmp_path, drawn_faces)
    before = recipe.describe()
    del before["optimiser"]["average"], before["precision"]
    assert find_changes(before, recipe) == {}
    assert find_changes({**before, "seed": 2}, recipe) == {"seed": (2, 1)}


def test_nothing_to_resume_is_said(tmp_path: Path, drawn_faces: Path) -> None:
    with pytest.raises(CheckpointRefused, match="cannot be read"):
        train(thin_recipe(tmp_path, drawn_faces), tmp_path / "run", DataFolder(tmp_path), resume=True)


@pytest.mark.parametrize("rate", ["1e4", "1e30"])
def test_a_loss_that_grows_out_of_hand_stops_and_leaves_the_last_good_checkpoint(
    tmp_path: Path, drawn_faces: Path, rate: str
) -> None:
    changes = (
        "loss.head = 'softmax'",
        "schedule.save = 16",
        "schedule.warm_up = 0.0",
        "optimiser.clip = 1e30",
    )
    recipe = thin_recipe(tmp_path, drawn_faces, *changes, f"optimiser.rate = {rate}")
    with pytest.raises(TrainingDiverged):
        train(recipe, tmp_path / "run", DataFolder(tmp_path))
    state = load_checkpoint(tmp_path / "run" / LAST, recipe.architecture())
    assert all(value.isfinite().all() for value in state["backbone"].values())


def test_two_batches_a_step_are_one_of_twice_the_size(tmp_path: Path, drawn_faces: Path) -> None:
    halves = ("schedule.batch = 8", "optimiser.accumulate = 2")
    once, twice = (learn(thin_recipe(tmp_path, drawn_faces, *PLAIN, *cut))[1] for cut in ((), halves))
    assert twice == pytest.approx(once, rel=1e-4)


def test_an_identity_with_one_image_is_left_out_and_a_corrupt_image_counted(
    tmp_path: Path, drawn_faces: Path
) -> None:
    folder = tmp_path / "faces"
    for name in ("0000", "0001", "0002"):
        (folder / name).mkdir(parents=True)
        for image in sorted((drawn_faces / name).iterdir()):
            (folder / name / image.name).write_bytes(image.read_bytes())
    (folder / "alone").mkdir()
    (folder / "alone" / "one.png").write_bytes((drawn_faces / "0003" / "0003_0000.png").read_bytes())
    (folder / "0001" / "0001_0000.png").write_bytes(b"no picture")
    (folder / "0002" / "0002_0001.png").write_bytes(b"")
    outcome = train(thin_recipe(tmp_path, folder), tmp_path / "run", DataFolder(tmp_path))
    told = load_checkpoint(outcome.checkpoint, {})["data"]
    assert told == {"identities": 3, "images": 12, "blends": 0, "left_out": 1, "unreadable": 2}


def test_the_rate_rises_and_falls_as_the_recipe_says(tmp_path: Path) -> None:
    cosine = thin_recipe(tmp_path, tmp_path, "schedule.images = 1600", "schedule.warm_up = 0.1")
    assert [learning_rate_at(step, cosine) for step in (0, 9, 55, 100)] == pytest.approx(
        [0.01, 0.1, 0.05, 0.0]
    )
    steps = thin_recipe(
        tmp_path, tmp_path, "schedule = { images = 1600, kind = 'step', warm_up = 0, drops = [0.5, 0.9] }"
    )
    assert [learning_rate_at(step, steps) for step in (0, 49, 50, 90)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.001]
    )


def test_half_precision_is_for_gpus(caplog: pytest.LogCaptureFixture) -> None:
    assert choose_precision("bfloat16", torch.device("cuda", 0)) == torch.bfloat16
    assert choose_precision("float16", torch.device("cpu")) == torch.float32
    assert "is for GPUs" in caplog.text


def test_weights_lie_with_their_channels_last(tmp_path: Path, drawn_faces: Path) -> None:
    learner, _ = learn(thin_recipe(tmp_path, drawn_faces), steps=1)
    weight = learner.backbone.get_parameter("blocks.0.branch.0.weight")
    assert weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("change", ["schedule.batch = 0", "optimiser.accumulate = 0", "loss.sample = 0.0"])
def test_numbers_that_cannot_work_are_refused(tmp_path: Path, drawn_faces: Path, change: str) -> None:
    with pytest.raises(RecipeRefused):
        train(thin_recipe(tmp_path, drawn_faces, change), tmp_path / "run", DataFolder(tmp_path))
