"""The command line; the module of a command is imported only when the command is looked up."""

import json
import logging
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from sameface.model.errors import SamefaceError

log = logging.getLogger("sameface")

ROOMS = {
    "serve": "sameface.api.commands",
    "verify": "sameface.model.commands.photos",
    "detect": "sameface.model.commands.photos",
    "embed": "sameface.model.commands.photos",
    "enroll": "sameface.model.commands.gallery",
    "identify": "sameface.model.commands.gallery",
    "people": "sameface.model.commands.gallery",
    "forget": "sameface.model.commands.gallery",
    "gallery": "sameface.model.commands.upkeep",
    "pull": "sameface.model.commands.bundles",
    "models": "sameface.model.commands.bundles",
    "demo": "sameface.model.commands.bundles",
    "evaluate": "sameface.training.commands.evaluate",
    "calibrate": "sameface.model.commands.calibrate",
    "new-key": "sameface.api.commands",
    "prepare": "sameface.training.commands.data",
    "synthesize": "sameface.training.commands.data",
    "train": "sameface.training.commands.train",
    "bundle": "sameface.training.commands.export",
}
EXTRAS = {"torch": "train", "tensorboard": "train", "matplotlib": "evaluate", "jinja2": "evaluate"}


class Rooms(TyperGroup):
    """Finds a command in its module, which it imports."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of all commands, in the order of the help."""
        return list(ROOMS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command `cmd_name`, or None if there is none."""
        if cmd_name not in ROOMS:
            return None
        command = typer.main.get_group(import_module(ROOMS[cmd_name]).app).get_command(ctx, cmd_name)
        hide_types_of_flags(command, ctx)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command and its remaining arguments; the former `export` and `import` are redirected."""
        if args[0] in ("export", "import"):
            group = "bundle" if any(arg.endswith(".pt") for arg in args) else "gallery"
            now = f"`sameface {group} {args[0]}`"
            Console(stderr=True).print(f"`sameface {args[0]}` is called {now} now.", soft_wrap=True)
            args = [group, *args]
        return super().resolve_command(ctx, args)


def hide_types_of_flags(command: Any, ctx: Any) -> None:
    """Let the help of a command and its subcommands show no `<bool>` for flags that take no value."""
    for option in command.get_params(ctx):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for subcommand in getattr(command, "commands", {}).values():
        hide_types_of_flags(subcommand, ctx)


app = typer.Typer(
    cls=Rooms,
    help="Is this the same face?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def root() -> None:
    """Is this the same face?"""


def main() -> None:
    """Run a command; the exit code 0 is yes or done, 1 is no, 2 is an error, printed in one sentence."""
    try:
        app()
    except SamefaceError as error:
        fail(error.code, error.detail)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
            extra = EXTRAS[error.name]
            fail("not_installed", f"This needs {error.name}: pip install 'sameface[{extra}]'.")
        log.debug("unexpected", exc_info=True)
        fail("internal", f"{type(error).__name__}: {error}")


def fail(code: str, detail: str) -> NoReturn:
    """Print the error, as JSON after `--json`, and exit with 2."""
    if "--json" in sys.argv:
        print(json.dumps({"code": code, "detail": detail}))
    else:
        Console(stderr=True).print(f"[red]{code}[/red]: {escape(detail)}", soft_wrap=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
