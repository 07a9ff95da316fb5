"""A flag for every setting of the server, with its variable and its help."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ValidationError

from sameface.api.errors import name_field
from sameface.api.settings import PREFIX, Settings
from sameface.model.errors import CannotServe

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def take_settings(command: Callable[[Settings, bool], None]) -> Callable[..., None]:
    """Give `command` a flag per setting; one without its flag is read from the environment or the file."""

    def run(as_json: bool, **flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value is not None}
        try:
            settings = Settings(**given)
        except ValidationError as error:
            faults = [f"{name_origin(name_field(fault), given)}: {fault['msg']}" for fault in error.errors()]
            raise CannotServe("; ".join(faults)) from None
        command(settings, as_json)

    as_json = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    flags = [to_flag(name) for name in Settings.model_fields]
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature([*flags, as_json])  # type: ignore[attr-defined]
    return run


def name_origin(field: str, given: dict[str, Any]) -> str:
    """The name of a setting where it was set: its variable, or its key in the file if it is not `given`."""
    is_in_file = "config" in given and field.partition(".")[0] not in given
    return f"{field} in {given['config']}" if is_in_file else f"{PREFIX}{field.upper()}"


def to_flag(name: str) -> inspect.Parameter:
    """The flag of the setting `name`, in few columns: its variable is named alike, and not shown."""
    field = Settings.model_fields[name]
    kind: Any = str if get_origin(field.annotation) is tuple else field.annotation
    choices = f"One of {', '.join(get_args(kind))}." if get_origin(kind) is Literal else ""
    default = f"Default: {field.default}." if field.default else ""
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{PREFIX}{name.upper()}",
        metavar="<word>" if choices else None,
        show_envvar=False,
        help=" ".join(part for part in (field.description, choices, default) if part),
        show_default=False,
    )
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
