"""A recipe: all that decides a training run, read from one TOML file and never changed after."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from sameface.training.data.augment import Augmentation
from sameface.training.errors import RecipeRefused

Section = TypeVar("Section")


@dataclass(frozen=True, slots=True)
class DataPart:
    """Where the faces are."""

    path: str  # a folder of identity folders, a tar shard or a folder of them, or the .rec of a RecordIO set
    min_images: int = 2  # an identity with fewer is left out
    memory: int = 2_000_000_000  # bytes of decoded crops that are kept, so that they are decoded only once
    blends: int = 0  # of each image with another, for a teacher to describe: more to learn from than there is


@dataclass(frozen=True, slots=True)
class BackbonePart:
    """Which network."""

    name: str = "residual"
    dimension: int = 128
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LossPart:
    """What is learned: a margin head, a pair loss, or both, and what is added to them."""

    head: str | None = None
    head_options: dict[str, Any] = field(default_factory=dict)
    focal_gamma: float = 0.0
    sample: float = 1.0  # share of the other classes that a batch is compared with (Partial FC)
    pair: str | None = None
    pair_options: dict[str, Any] = field(default_factory=dict)
    people: int = 32  # of a batch, where pairs are made
    head_weight: float = 1.0
    pair_weight: float = 1.0
    center_weight: float = 0.0
    center_rate: float = 0.5  # at which centers follow their images
    teacher_weight: float = 8.0


@dataclass(frozen=True, slots=True)
class OptimiserPart:
    """How weights move."""

    name: str = "sgd"  # or adamw
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    clip: float = 5.0  # the largest norm of a gradient
    accumulate: int = 1  # batches per step
    average: float = 0.0  # of an exponential moving average of the weights, 0 for none


@dataclass(frozen=True, slots=True)
class SchedulePart:
    """How long, and how the rate falls."""

    images: int = 300_000
    batch: int = 128  # over all processes
    save: int = 20_000  # images between checkpoints
    warm_up: float = 0.05  # share of the steps in which the rate rises
    kind: str = "cosine"  # or step
    drops: tuple[float, ...] = (0.5, 0.75, 0.9)  # shares of the steps at which a step schedule divides by ten


@dataclass(frozen=True, slots=True)
class EvaluationPart:
    """Pairs that say how good the network is while it learns."""

    pairs: str  # a list as LFW has it
    images: str  # the folder of their crops, as `sameface prepare` makes it
    every: int = 50_000  # images between two looks


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run."""

    name: str
    data: DataPart
    backbone: BackbonePart = BackbonePart()
    loss: LossPart = LossPart(head="cosface")
    augmentation: Augmentation = field(default_factory=Augmentation)
    teacher: str | None = None  # a published model's name or a bundle's folder, whose embeddings are imitated
    optimiser: OptimiserPart = OptimiserPart()
    schedule: SchedulePart = SchedulePart()
    evaluation: EvaluationPart | None = None
    seed: int = 1
    precision: str = "float32"  # or bfloat16, float16: on a GPU

    def __post_init__(self) -> None:
        if not (self.loss.head or self.loss.pair or self.teacher):
            raise RecipeRefused("a recipe needs something to learn: loss.head, loss.pair or a teacher")
        if self.data.blends and (self.loss.pair or not self.teacher):
            raise RecipeRefused("data.blends are nobody's faces: they need a teacher, and no loss.pair")
        for what, value, known in (
            ("optimiser.name", self.optimiser.name, ("sgd", "adamw")),
            ("schedule.kind", self.schedule.kind, ("cosine", "step")),
            ("precision", self.precision, ("float32", "bfloat16", "float16")),
        ):
            if value not in known:
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
        """Images that one step of the optimiser sees."""
        return self.schedule.batch * self.optimiser.accumulate

    @property
    def steps(self) -> int:
        """Steps of the optimiser."""
        return max(1, self.schedule.images // self.images_per_step)

    def architecture(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to fit."""
        return {
            "backbone": self.backbone.name,
            "dimension": self.backbone.dimension,
            "options": self.backbone.options,
            "head": self.loss.head,
        }

    def describe(self) -> dict[str, Any]:
        """As it was written, defaults included."""
        return dataclasses.asdict(self)


def read_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe in a TOML file, on top of the one that it names as its `base`.

    A change is a line of TOML like `schedule.batch = 64`. Relative paths in a recipe start where the
    command is run; the base is looked for beside the file that names it.
    """
    written = read_tables(path)
    for change in changes:
        written = merge(written, parse(change, f"the change {change!r}"))
    return build_section(Recipe, {"name": path.stem, **written}, "")


def read_tables(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What a file says, and beneath it what its base says."""
    if path in seen:
        raise RecipeRefused(f"{path} is its own base.")
    try:
        written = parse(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise RecipeRefused(f"{path} cannot be read: {error.strerror}.") from error
    base = written.pop("base", None)
    return merge(read_tables(path.parent / str(base), (*seen, path)), written) if base else written


def parse(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise RecipeRefused(f"{where} is not TOML: {error}.") from error


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables; what is said above counts. Options are taken whole: they belong to one name."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict) and not key.endswith("options"):
            merged[key] = merge(below[key], above[key])
    return merged


def build_section(kind: type[Section], written: Any, place: str) -> Section:
    """A section from what was written; an unknown key is an error that names the known ones."""
    if not isinstance(written, Mapping):
        raise RecipeRefused(f"{place or 'the recipe'} is a table, not {written!r}")
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
    """Whether a field may be left out."""
    return (each.default, each.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)


def read_value(hint: Any, value: Any, place: str) -> Any:
    """One value, if it is of the kind that belongs there."""
    kinds = (
        [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    )
    kind = kinds[0]
    if dataclasses.is_dataclass(kind):
        return build_section(kind, value, f"{place}.")  # type: ignore[arg-type]
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(value, list):
        return tuple(value)
    expected = dict if kind == dict[str, Any] else kind
    if isinstance(expected, type) and type(value) is not expected:
        raise RecipeRefused(f"{place} is {expected.__name__}, not {value!r}")
    return value
