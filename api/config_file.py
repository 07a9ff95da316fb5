"""The settings of a TOML file, checked by name and type before they are settings."""

from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from sameface.model.errors import CannotServe
from sameface.model.files import read_toml

WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "a table",
}


class ConfigFile(PydanticBaseSettingsSource):
    """The source of settings that flags and environment leave open: the file that `config` names."""

    def __call__(self) -> dict[str, Any]:
        """The values of the file; none if no file is named."""
        path = self.current_state.get("config")
        return read_config(Path(path).expanduser(), self.settings_cls.model_fields) if path else {}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Required by pydantic-settings, and never called: `__call__` returns all values."""
        raise NotImplementedError


def read_config(path: Path, fields: dict[str, FieldInfo]) -> dict[str, Any]:
    """Read the TOML file at `path`; CannotServe if a key is none of `fields` or its value of another type."""
    values = read_toml(path)
    known = fields.keys() - {"config"}
    faults = [
        find_type_fault(key, value, fields[key]) if key in known else name_unknown(key, known)
        for key, value in values.items()
    ]
    if any(faults):
        raise CannotServe(f"{path}: {'; '.join(filter(None, faults))}.")
    return {key: expand_home(value, fields[key]) for key, value in values.items()}


def name_unknown(name: str, known: set[str]) -> str:
    """The sentence about a name that is not `known`, with the one that may be meant."""
    alike = get_close_matches(name.lower().removeprefix("sameface_").replace("-", "_"), sorted(known), 1, 0.6)
    return f"there is no setting {name!r}" + "".join(f" (did you mean {each!r}?)" for each in alike)


def find_type_fault(name: str, value: Any, field: FieldInfo) -> str | None:
    """The sentence about a value whose TOML type is not the setting's; None if it is."""
    wanted = toml_types(field.annotation)
    if type(value) in wanted:
        return None
    given = WORDS.get(type(value), "a date or time")
    return f"{name} must be {WORDS[wanted[0]]}, not {given}"


def toml_types(annotation: Any) -> list[type]:
    """The types that a value of a setting with this `annotation` may have in TOML, the usual one first."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return [kind for part in get_args(annotation) if part is not NoneType for kind in toml_types(part)]
    if origin is tuple:
        return [list]
    if annotation is float:
        return [float, int]
    return [annotation] if annotation in (bool, int) else [str]  # paths and choices are strings


def expand_home(value: Any, field: FieldInfo) -> Any:
    """The value with `~` replaced if it is a path: no shell has done so."""
    is_path = field.annotation is Path or Path in get_args(field.annotation)
    return Path(value).expanduser() if is_path else value
