"""Pages of lists, as the server answers them."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sameface_client.answers import AuditEntry, Calibration, CollectionDescription, Key, LoadedModel, Person

Item = TypeVar("Item", covariant=True)


class Page(Protocol[Item]):
    """Some items of a list; `next_cursor` leads to the next ones, and is None on the last page."""

    @property
    def items(self) -> Sequence[Item]:
        """The items."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins."""


def without_cursor(operation: Callable[..., Any]) -> inspect.Signature:
    """The signature of an operation that reads a page, as that of the method that reads all of them."""
    whole = inspect.signature(operation)
    return whole.replace(parameters=[each for each in whole.parameters.values() if each.name != "cursor"])


@dataclass(frozen=True, slots=True)
class CollectionPage:
    """Some collections by name."""

    items: list[CollectionDescription]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PersonPage:
    """Some people by id."""

    items: list[Person]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some entries of the audit, newest first."""

    items: list[AuditEntry]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some keys by id."""

    items: list[Key]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ModelPage:
    """The networks that the server runs."""

    items: list[LoadedModel]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class CalibrationPage:
    """The calibrations of the recogniser."""

    items: list[Calibration]
    next_cursor: str | None
