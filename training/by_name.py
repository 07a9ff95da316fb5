"""Builds what a recipe names; an unknown name or option is an error that lists the known ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from sameface.training.errors import RecipeRefused

Built = TypeVar("Built")

NUMBERS = (int, float, float | None)


@dataclass(frozen=True, slots=True)
class Choice(Generic[Built]):
    """What a key of a recipe may name, and the key of its options."""

    key: str
    options_key: str
    known: Mapping[str, Callable[..., Built]]

    def build(self, name: str, sizes: tuple[int, ...], options: dict[str, Any]) -> Built:
        """Call `known[name]` with `sizes` and `options`; only its keyword-only arguments may be options."""
        if name not in self.known:
            raise RecipeRefused(f"{self.key} is one of {', '.join(self.known)}, not {name!r}")
        maker = self.known[name]
        allowed = {
            each.name: each.annotation
            for each in signature(maker).parameters.values()
            if each.kind is Parameter.KEYWORD_ONLY
        }
        for option, value in options.items():
            if option not in allowed:
                listed = f"known are {', '.join(allowed)}" if allowed else "it has none"
                raise RecipeRefused(f"{self.options_key} of {name}: no option {option}; {listed}")
            if allowed[option] in NUMBERS and type(value) not in (int, float):
                raise RecipeRefused(f"{self.options_key}.{option} is a number, not {value!r}")
        try:
            return maker(*sizes, **options)
        except RecipeRefused as error:
            raise RecipeRefused(f"{self.options_key} of {name}: {error.detail}") from error
        except TypeError as error:  # a number where a list belongs
            raise RecipeRefused(f"{self.options_key} of {name} do not fit: {error}") from error
