"""Who acts: the caller, the request and the route behind what this task or thread does."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Quota:
    """How many faces or collections there may be, in the collections with these names or prefixes."""

    counted: str  # faces or collections
    limit: int
    within: tuple[str, ...] | None = None  # None: all collections


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller, request and route on whose behalf work is done, and the caller's quotas."""

    caller: str = "local"  # a key's id; `anonymous` over HTTP without keys; `local` in process and on the CLI
    request_id: str | None = None
    route: str | None = None  # the route's template or the command, never a path with ids in it
    quotas: tuple[Quota, ...] = ()  # beyond which the store takes no more from it


LOCAL = Actor()
_acting: ContextVar[Actor] = ContextVar("acting", default=LOCAL)


def current_actor() -> Actor:
    """The actor of this task or thread: a context variable, which `Threads.run` copies to its threads."""
    return _acting.get()


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Do the work of the block on behalf of `actor`."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def name_route(route: str) -> None:
    """Say by which `route` the work is done, for the rest of the enclosing `acting` block."""
    _acting.set(replace(_acting.get(), route=route))
