"""Recipes: what is written is what runs, and what cannot run says so before it starts."""

import dataclasses
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from sameface.training import recipe as sections
from sameface.training.backbones.by_name import build_backbone
from sameface.training.errors import RecipeRefused
from sameface.training.losses.total_loss import Objective
from sameface.training.recipe import Recipe, read_recipe
from tests.training.runs import ALONE

SECTIONS = {
    "data": sections.DataSection,
    "backbone": sections.BackboneSection,
    "loss": sections.LossSection,
    "optimiser": sections.OptimiserSection,
    "schedule": sections.ScheduleSection,
    "evaluation": sections.EvaluationSection,
    "augmentation": sections.Augmentation,
}
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
        (SMALL + "[schedule]\nbatch = 'many'", "schedule.batch is a whole number, not 'many'"),
        (SMALL + "[schedule]\nbatch = true", "schedule.batch is a whole number, not True"),
        (SMALL + "[schedule]\nkind = 'steep'", "one of cosine, step"),
        (SMALL + "[optimiser]\nname = 'adam'", "one of sgd, adamw"),
        (SMALL + "[loss]\n", "something to learn"),
        (SMALL + "blends = 2", "they need a teacher"),
        ("teacher = 'sface'\n" + SMALL + "blends = -1", "data.blends is at least 0"),
        (SMALL + "[augmentation]\nflip = 2", "augmentation.flip lies between 0 and 1"),
        (SMALL + "[schedule]\ndrops = 0.5", "schedule.drops is a list, not 0.5"),
        (SMALL + "[schedule]\ndrops = ['late']", "each of schedule.drops is a number, not 'late'"),
        (SMALL + "[loss]\nhead = 'cosine'", "loss.head is one of softmax, modified_softmax.*, not 'cosine'"),
        (SMALL + "[loss]\npair = 'triple'", "loss.pair is one of contrastive, triplet, not 'triple'"),
        (SMALL + "[backbone]\nname = 'resnet'", "backbone.name is one of residual, .*, not 'resnet'"),
        (SMALL + "[backbone]\nname = 50", "backbone.name is text in quotes, not 50"),
        ("data = 3", "data is a table"),
        ("[data", "not TOML"),
    ],
)
def test_what_cannot_run_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecipeRefused, match=said.replace("[", r"\[")):
        read(tmp_path, text)


def test_a_recipe_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeRefused, match="cannot be read"):
        read_recipe(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    "path", sorted([*Path("training/recipes").glob("*.toml"), *Path("docs").rglob("*.toml")]), ids=str
)
def test_every_recipe_of_ours_can_be_built(path: Path) -> None:
    recipe = read_recipe(path)
    objective = Objective(recipe, 100, ALONE)
    backbone = build_backbone(recipe.backbone.name, recipe.backbone.dimension, **recipe.backbone.options)
    assert next(backbone.parameters()).requires_grad
    assert (objective.head is None) == (recipe.loss.head is None)


def test_a_recipe_stands_on_its_base_and_changes_come_last(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        SMALL + "[schedule]\nbatch = 64\nimages = 640\n[optimiser]\nrate = 0.3"
    )
    (tmp_path / "mine.toml").write_text('base = "base.toml"\n[schedule]\nimages = 1280\n')
    recipe = read_recipe(tmp_path / "mine.toml", ["optimiser.rate = 1", "data.path = 'others'"])
    assert (recipe.name, recipe.schedule.batch, recipe.schedule.images) == ("mine", 64, 1280)
    assert (recipe.optimiser.rate, recipe.data.path) == (1.0, "others")


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ("loss.head=sphereface", "loss.head", "sphereface"),
        ("loss.head = arcface", "loss.head", "arcface"),
        ("loss.head='arcface'", "loss.head", "arcface"),
        ("data.path=/photos/of José", "data.path", "/photos/of José"),
        (r"data.path=C:\faces", "data.path", r"C:\faces"),
        ("schedule.batch=64", "schedule.batch", 64),
        ("schedule.drops=[0.5]", "schedule.drops", (0.5,)),
    ],
)
def test_a_change_needs_quotes_no_more_than_a_shell_does(
    tmp_path: Path, change: str, key: str, value: object
) -> None:
    (tmp_path / "mine.toml").write_text(SMALL)
    section, name = key.split(".")
    assert getattr(getattr(read_recipe(tmp_path / "mine.toml", [change]), section), name) == value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("no equals", "--set takes KEY=VALUE, as in schedule.batch=64, not 'no equals'"),
        ("loss.head=", "--set takes KEY=VALUE"),
        ("=5", "--set takes KEY=VALUE"),
        ("schedule.drops=[0.5", "--set 'schedule.drops=[0.5' is not TOML"),
        ("schedule.batch=many", "schedule.batch is a whole number, not 'many'"),
        ("loss head=arcface", "is not TOML"),
        ("loss.heads=arcface", "no such key: loss.heads; known are head, "),
    ],
)
def test_a_change_that_cannot_be_made_says_which_key_and_what_it_takes(
    tmp_path: Path, change: str, said: str
) -> None:
    (tmp_path / "mine.toml").write_text(SMALL)
    with pytest.raises(RecipeRefused, match=re.escape(said)):
        read_recipe(tmp_path / "mine.toml", [change])


def test_options_of_another_head_do_not_shine_through(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(SMALL + '[loss]\nhead = "cosface"\nhead_options = { margin = 0.2 }')
    (tmp_path / "mine.toml").write_text('base = "base.toml"\n[loss]\nhead = "softmax"\nhead_options = {}')
    assert read_recipe(tmp_path / "mine.toml").loss.head_options == {}


def test_options_stay_with_their_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        SMALL
        + '[loss]\nhead = "cosface"\nhead_options = { margin = 0.2 }\n[backbone]\noptions = { widths = [8] }'
    )
    kept = read_recipe(tmp_path / "mine.toml", ["loss.head=cosface", "backbone.dimension=16"])
    assert (kept.loss.head_options, kept.backbone.options) == ({"margin": 0.2}, {"widths": [8]})
    other = read_recipe(tmp_path / "mine.toml", ["loss.head=sphereface", "backbone.name=mobilefacenet"])
    assert (other.loss.head_options, other.backbone.options) == ({}, {})


def test_a_recipe_that_is_its_own_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeRefused, match="its own base"):
        read(tmp_path, 'base = "mine.toml"')


def list_keys(section: type, place: str = "") -> dict[str, str]:
    """Every key of a recipe with its default, as the page shows it."""
    keys = {}
    for field in dataclasses.fields(section):
        if field.name in SECTIONS:
            keys |= list_keys(SECTIONS[field.name], f"{field.name}.")
        else:
            keys[f"{place}{field.name}"] = (
                "" if field.default in (dataclasses.MISSING, None) else str(field.default)
            )
    return keys


def test_the_page_on_training_lists_every_key_with_its_default() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| (.*?) \|", Path("docs/training.md").read_text("utf-8"), re.MULTILINE
    )
    expected = list_keys(Recipe) | {"name": "the file's", "loss.head": "cosface without a [loss]"}
    assert {key: default.replace("`", "").strip() for key, default in rows} == expected
