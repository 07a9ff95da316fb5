"""What a recipe may change when its run is resumed, and the refusal of everything else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sameface.training.errors import CheckpointRefused
from sameface.training.recipe import Recipe

FREE = ("name", "data.memory", "evaluation.every", "evaluation.images", "evaluation.pairs", "schedule.save")
PAIRS = ("evaluation.images", "evaluation.pairs")

Changes = dict[str, tuple[Any, Any]]  # by key: the value before and the value now


def find_changes(before: Mapping[str, Any], recipe: Recipe) -> Changes:
    """The keys whose values differ from `before`, the recipe of a checkpoint."""
    old, new = flatten(before), flatten(recipe.describe())
    return {
        key: (old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and was_known(key, before)
    }


def was_known(key: str, before: Mapping[str, Any]) -> bool:
    """Whether the version that wrote `before` knew the key, whose default is what that version did."""
    section, _, rest = key.partition(".")
    table = before.get(section)
    return rest.partition(".")[0] in table if isinstance(table, Mapping) else section in before


def flatten(table: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """A nested table as one, its keys joined by dots; lists and tuples are equal."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{place}{key}.")
        else:
            flat[f"{place}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def refuse_changes(checkpoint: Path, changes: Changes) -> None:
    """Raise if something changed that the rest of the run depends on: its learning rate would jump, say."""
    changed = [
        f"{key} was {show(before)} and is {show(now)}"
        for key, (before, now) in changes.items()
        if key not in FREE
    ]
    if changed:
        raise CheckpointRefused(
            f"{checkpoint} was trained by another recipe: {', '.join(changed)}. A resumed run goes on exactly"
            f" as it began, and only {', '.join(FREE)} may change: take that back, or train anew with"
            " another --out."
        )


def show(value: Any) -> str:
    """A value as a recipe writes it."""
    return "not given" if value is None else repr(value)
