"""Recipes: what is written is what runs, and what cannot run says so before it starts."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from training.errors import RecipeRefused
from training.recipe import read_recipe

SMALL = """
[data]
path = "faces"
"""


def read(folder: Path, text: str):
    (folder / "mine.toml").write_text(text)
    return read_recipe(folder / "mine.toml")


def test_a_recipe_needs_little_more_than_its_data(tmp_path: Path) -> None:
    recipe = read(tmp_path, SMALL)
    assert (recipe.name, recipe.data.path, recipe.loss.head) == ("mine", "faces", "cosface")
    assert recipe.steps == 300_000 // 128


def test_every_section_can_be_written(tmp_path: Path) -> None:
    recipe = read(
        tmp_path,
        'teacher = "sface"\n'
        + SMALL
        + """
[loss]
head = "arcface"
head_options = {margin = 0.4, scale = 32}
teacher_weight = 4
[augmentation]
flip = 0
[schedule]
kind = "step"
drops = [0.5, 0.8]
""",
    )
    assert recipe.loss.head_options == {"margin": 0.4, "scale": 32}
    assert (recipe.augmentation.flip, recipe.schedule.drops) == (0.0, (0.5, 0.8))
    assert (recipe.teacher, recipe.describe()["loss"]["teacher_weight"]) == ("sface", 4.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "data is missing"),
        ("[data]\n", "data.path is missing"),
        (SMALL + "surprise = 1", "data.surprise; known are path, min_images"),
        ("surprise = 1\n" + SMALL, "no such key: surprise; known are name, data"),
        (SMALL + "[schedule]\nbatch = 'many'", "schedule.batch is int, not 'many'"),
        (SMALL + "[schedule]\nbatch = true", "schedule.batch is int"),
        (SMALL + "[schedule]\nkind = 'steep'", "one of cosine, step"),
        (SMALL + "[optimiser]\nname = 'adam'", "one of sgd, adamw"),
        (SMALL + "[loss]\n", "something to learn"),
        (SMALL + "[augmentation]\nflip = 2", "between 0 and 1"),
        ("data = 3", "data. is a table"),
        ("[data", "not TOML"),
    ],
)
def test_what_cannot_run_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecipeRefused, match=said.replace("[", r"\[")):
        read(tmp_path, text)


def test_a_recipe_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeRefused, match="cannot be read"):
        read_recipe(tmp_path / "nothing.toml")
