"""Builds what a recipe names; an unknown name or option is an error that lists the known ones."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from sameface.training.errors import RecipeRefused

Built = TypeVar("Built")


def build_choice(
    kind: str,
    known: Mapping[str, Callable[..., Built]],
    name: str,
    sizes: tuple[int, ...],
    options: dict[str, Any],
) -> Built:
    """Call `known[name]` with `sizes` and `options`; only its keyword-only arguments may be options."""
    if name not in known:
        raise RecipeRefused(f"no {kind} is called {name!r}; known are {', '.join(known)}")
    maker = known[name]
    allowed = [
        each.name for each in signature(maker).parameters.values() if each.kind is Parameter.KEYWORD_ONLY
    ]
    unknown = ", ".join(sorted(options.keys() - set(allowed)))
    if unknown:
        listed = f"known are {', '.join(allowed)}" if allowed else "it has none"
        raise RecipeRefused(f"the {kind} {name} has no option {unknown}; {listed}")
    try:
        return maker(*sizes, **options)
    except TypeError as error:  # a word where a number belongs
        raise RecipeRefused(f"the {kind} {name} cannot be built so: {error}") from error
