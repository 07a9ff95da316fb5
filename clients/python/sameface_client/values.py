"""Frozen values and their JSON: read by the types of their fields, written with the same names."""

import base64
import json
import sys
import types
from array import array
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from sameface_client.errors import UnexpectedAnswer

Answer = TypeVar("Answer")
Reader: TypeAlias = Callable[[Any], Any]
if TYPE_CHECKING:  # float32; numpy.asarray() shares its memory
    Floats: TypeAlias = array[float]
else:
    Floats = array  # which Python 3.11 cannot index


class Value:
    """A value that a call returns; `to_dict()` has the names and the shape of the HTTP API."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values that JSON can hold."""
        return {each.name: to_plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]


def to_plain(value: Any) -> Any:
    """A value, or values in lists and mappings at any depth, as JSON can hold them."""
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, array):
        return value.tolist()
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def read(kind: type[Answer], content: bytes) -> Answer:
    """The value of this `kind` in a response's JSON; fields that only a newer server knows are ignored."""
    try:
        value: Answer = read_plain(kind, json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnexpectedAnswer(f"The server's answer is no {kind.__name__}: {error}.") from error
    return value


def read_plain(kind: Any, value: Any) -> Any:
    """The value of this `kind`, from what JSON held."""
    return reader_of(kind)(value)


@cache
def reader_of(hint: Any) -> Reader:
    """The function that turns JSON into a value of the type `hint`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        read_item = reader_of(inner[0])
        return lambda items: origin(map(read_item, items))
    if origin in (Union, types.UnionType):
        return reader_of_union(tuple(kind for kind in inner if kind is not type(None)))
    if hint is array:
        return read_floats
    if is_dataclass(hint):
        return reader_of_value(hint)
    return datetime.fromisoformat if hint is datetime else lambda value: value


def reader_of_value(kind: Any) -> Reader:
    """The function that turns a JSON object into a frozen value."""
    hints = get_type_hints(kind)
    readers = [(each.name, reader_of(hints[each.name])) for each in fields(kind)]
    return lambda value: kind(**{name: read_it(value[name]) for name, read_it in readers if name in value})


def reader_of_union(kinds: tuple[Any, ...]) -> Reader:
    """The function that reads the first of `kinds` whose fields a JSON object has, and None as None."""
    choices = [
        ({each.name for each in fields(kind)} if is_dataclass(kind) else set(), reader_of(kind))
        for kind in kinds
    ]

    def read_first(value: Any) -> Any:
        if value is None:
            return None
        return next(read_it for names, read_it in choices if not names or names <= value.keys())(value)

    return read_first


def read_floats(encoded: str) -> Floats:
    """Base64 of little-endian float32 as an array of floats."""
    return swap_on_big_endian(array("f", base64.b64decode(encoded)))


def write_floats(floats: Floats) -> bytes:
    """Little-endian float32."""
    return swap_on_big_endian(floats[:]).tobytes()


def to_base64(content: bytes) -> str:
    """Bytes as JSON holds them."""
    return base64.b64encode(content).decode()


def swap_on_big_endian(floats: Floats) -> Floats:
    """The floats in the other byte order, if this machine's is not that of the wire."""
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
