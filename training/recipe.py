"""A recipe: all settings of a training run, read from a TOML file."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from sameface.training.backbones.by_name import BACKBONES
from sameface.training.data.augment import Augmentation
from sameface.training.errors import RecipeRefused
from sameface.training.losses.by_name import HEADS, PAIR_LOSSES

Built = TypeVar("Built")

IN_WORDS = {int: "a whole number", float: "a number", str: "text in quotes", dict: "a table", tuple: "a list"}


@dataclass(frozen=True, slots=True)
class DataSection:
    """The faces to train on."""

    path: str  # a folder of identity folders, a tar shard or a folder of them, or the .rec of a RecordIO set
    min_images: int = 2  # identities with fewer images are left out
    memory: int = 2_000_000_000  # bytes of decoded crops to keep, so that later epochs need not decode them
    blends: int = 0  # blends of each image with another, as additional crops for a teacher to embed


@dataclass(frozen=True, slots=True)
class BackboneSection:
    """The network to train."""

    name: str = "residual"
    dimension: int = 128
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LossSection:
    """The terms of the loss: a margin head, a pair loss or both, center loss and teacher."""

    head: str | None = None
    head_options: dict[str, Any] = field(default_factory=dict)
    focal_gamma: float = 0.0
    sample: float = 1.0  # share of the other classes that a batch is compared with (Partial FC)
    pair: str | None = None
    pair_options: dict[str, Any] = field(default_factory=dict)
    people: int = 32  # in a batch, if there is a pair loss
    head_weight: float = 1.0
    pair_weight: float = 1.0
    center_weight: float = 0.0
    center_rate: float = 0.5  # alpha of the center loss
    teacher_weight: float = 8.0


@dataclass(frozen=True, slots=True)
class OptimiserSection:
    """How the weights are updated."""

    name: str = "sgd"  # or adamw
    rate: float = 0.1  # the peak learning rate
    momentum: float = 0.9
    weight_decay: float = 5e-4
    clip: float = 5.0  # the largest norm of the gradient
    accumulate: int = 1  # batches per step
    average: float = 0.0  # decay of the exponential moving average of the weights, 0 for none


@dataclass(frozen=True, slots=True)
class ScheduleSection:
    """How long to train, and how the learning rate changes."""

    images: int = 300_000
    batch: int = 128  # images per batch, of all ranks together
    save: int = 20_000  # images between checkpoints
    warm_up: float = 0.05  # share of the steps in which the learning rate rises
    kind: str = "cosine"  # or step
    drops: tuple[float, ...] = (0.5, 0.75, 0.9)  # shares of the steps at which `step` divides by ten


@dataclass(frozen=True, slots=True)
class EvaluationSection:
    """The pairs on which accuracy is measured during training."""

    pairs: str  # a list in the format of LFW
    images: str  # the folder of their crops, made by `sameface prepare`
    every: int = 50_000  # images between two measurements


@dataclass(frozen=True, slots=True)
class Recipe:
    """All settings of one training run."""

    name: str
    data: DataSection
    backbone: BackboneSection = BackboneSection()
    loss: LossSection = LossSection(head="cosface")
    augmentation: Augmentation = field(default_factory=Augmentation)
    teacher: str | None = None  # a published model or a bundle's folder: its embeddings are imitated
    optimiser: OptimiserSection = OptimiserSection()
    schedule: ScheduleSection = ScheduleSection()
    evaluation: EvaluationSection | None = None
    seed: int = 1
    precision: str = "float32"  # or bfloat16, float16: on a GPU

    def __post_init__(self) -> None:
        if not (self.loss.head or self.loss.pair or self.teacher):
            raise RecipeRefused(
                "a recipe needs something to learn: loss.head, as cosface, loss.pair or a teacher"
            )
        if self.data.blends and (self.loss.pair or not self.teacher):
            raise RecipeRefused("data.blends are nobody's faces: they need a teacher, and no loss.pair")
        for what, value, known in (
            ("backbone.name", self.backbone.name, BACKBONES),
            ("loss.head", self.loss.head, HEADS),
            ("loss.pair", self.loss.pair, PAIR_LOSSES),
            ("optimiser.name", self.optimiser.name, ("sgd", "adamw")),
            ("schedule.kind", self.schedule.kind, ("cosine", "step")),
            ("precision", self.precision, ("float32", "bfloat16", "float16")),
        ):
            if value is not None and value not in known:
                raise RecipeRefused(f"{what} is one of {', '.join(known)}, not {value!r}")
        for what, number, least in (
            ("schedule.images", self.schedule.images, 1),
            ("schedule.batch", self.schedule.batch, 2),
            ("schedule.save", self.schedule.save, 1),
            ("optimiser.accumulate", self.optimiser.accumulate, 1),
            ("loss.people", self.loss.people, 2),
            ("data.blends", self.data.blends, 0),
        ):
            if number < least:
                raise RecipeRefused(f"{what} is at least {least}, not {number}")

    @property
    def images_per_step(self) -> int:
        """Images per optimiser step, of all ranks and accumulated batches."""
        return self.schedule.batch * self.optimiser.accumulate

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return max(1, self.schedule.images // self.images_per_step)

    def architecture(self) -> dict[str, Any]:
        """The settings that a checkpoint must share with the recipe."""
        return {
            "backbone": self.backbone.name,
            "dimension": self.backbone.dimension,
            "options": self.backbone.options,
            "head": self.loss.head,
        }

    def describe(self) -> dict[str, Any]:
        """The recipe as nested dictionaries, defaults included."""
        return dataclasses.asdict(self)


def read_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """Read the recipe at `path`, merged over the recipe that it names as its `base`.

    Each of `changes` is like `schedule.batch=64` or `loss.head=arcface`, and is merged last. Paths in the
    recipe are relative to the working directory; the path of a base is relative to the file that names it.
    """
    written = read_tables(path)
    for change in changes:
        written = merge(written, parse_change(change))
    return build_section(Recipe, {"name": path.stem, **written}, "")


def read_tables(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of the file at `path`, merged over those of its base; `seen` are the files that led here."""
    if path in seen:
        raise RecipeRefused(f"{path} is its own base.")
    try:
        written = parse(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise RecipeRefused(f"{path} cannot be read: {error.strerror}.") from error
    base = written.pop("base", None)
    return merge(read_tables(path.parent / str(base), (*seen, path)), written) if base else written


def parse(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; `where` names the text in errors."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise RecipeRefused(f"{where} is not TOML: {error}.") from error


def parse_change(change: str) -> dict[str, Any]:
    """Parse `KEY=VALUE`; a value that is no TOML is text, unless it opens a quote, a list or a table."""
    key, _, value = (part.strip() for part in change.partition("="))
    if not key or not value:
        raise RecipeRefused(f"--set takes KEY=VALUE, as in schedule.batch=64, not {change!r}")
    try:
        return tomllib.loads(change)
    except ValueError:
        quoted = json.dumps(value, ensure_ascii=False)
        return parse(change if value[0] in "\"'[{" else f"{key} = {quoted}", f"--set {change!r}")


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables; `above` wins, and replaces options whole, since they belong to one name.

    If it gives another name, the options below are dropped.
    """
    merged = {**below, **above}
    for name, options in (("name", "options"), ("head", "head_options"), ("pair", "pair_options")):
        if options in below and options not in above and merged.get(name) != below.get(name):
            del merged[options]
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict) and not key.endswith("options"):
            merged[key] = merge(below[key], above[key])
    return merged


def build_section(kind: type[Built], written: Any, place: str) -> Built:
    """Build the dataclass `kind` from a table; an unknown key is an error that lists the known ones."""
    if not isinstance(written, Mapping):
        raise RecipeRefused(f"{place.rstrip('.') or 'the recipe'} is a table, not {written!r}")
    hints = get_type_hints(kind)
    unknown = ", ".join(sorted(f"{place}{key}" for key in written.keys() - hints.keys()))
    if unknown:
        raise RecipeRefused(f"no such key: {unknown}; known are {', '.join(hints)}")
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    needed = [each.name for each in fields if not has_default(each) and each.name not in written]
    if needed:
        raise RecipeRefused(f"{place}{needed[0]} is missing")
    values = {key: read_value(hints[key], value, f"{place}{key}") for key, value in written.items()}
    return kind(**values)


def has_default(each: "dataclasses.Field[Any]") -> bool:
    """Whether the field `each` may be left out."""
    return (each.default, each.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)


def read_value(hint: Any, value: Any, place: str) -> Any:
    """Convert a TOML value to the type `hint`, or refuse it; `place` is its key in errors."""
    kinds = (
        [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    )
    kind = kinds[0]
    if dataclasses.is_dataclass(kind):
        return build_section(kind, value, f"{place}.")  # type: ignore[arg-type]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(read_value(get_args(kind)[0], each, f"each of {place}") for each in value)
    if kind is float and type(value) is int:
        return float(value)
    expected = get_origin(kind) or kind
    if type(value) is not expected:
        raise RecipeRefused(f"{place} is {IN_WORDS[expected]}, not {value!r}")
    return value
