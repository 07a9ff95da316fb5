"""The command line; the module of a command is imported only when the command runs."""

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from sameface.model.errors import FolderRefused, SamefaceError

log = logging.getLogger("sameface")

ROOMS = {
    "serve": "sameface.api.commands.serve",
    "verify": "sameface.model.commands.photos",
    "detect": "sameface.model.commands.photos",
    "embed": "sameface.model.commands.photos",
    "enroll": "sameface.model.commands.enroll",
    "identify": "sameface.model.commands.identify",
    "collections": "sameface.model.commands.people",
    "people": "sameface.model.commands.people",
    "forget": "sameface.model.commands.people",
    "gallery": "sameface.model.commands.upkeep",
    "backup": "sameface.model.commands.backup",
    "restore": "sameface.model.commands.backup",
    "import-compreface": "sameface.model.commands.import_compreface",
    "audit": "sameface.model.commands.audit",
    "pull": "sameface.model.commands.bundles",
    "models": "sameface.model.commands.bundles",
    "demo": "sameface.model.commands.bundles",
    "evaluate": "sameface.training.commands.evaluate",
    "calibrate": "sameface.model.commands.calibration.calibrate",
    "calibrations": "sameface.model.commands.calibration.calibrations",
    "keys": "sameface.model.commands.keys",
    "doctor": "sameface.api.commands.doctor",
    "prepare": "sameface.training.commands.data",
    "synthesize": "sameface.training.commands.data",
    "pairs": "sameface.training.commands.data",
    "train": "sameface.training.commands.train",
    "bundle": "sameface.training.commands.export",
    "quantize": "sameface.training.commands.quantize",
}
HELP = {  # the first line of each docstring, so that the help imports no module
    "serve": "Serve over HTTP; flags may also be variables, --port as SAMEFACE_PORT, or keys of a TOML file.",
    "verify": "Say whether two photos show the same person: exit code 0 if so, 1 if not.",
    "detect": "Find the faces in a photo.",
    "embed": "Print the unit embedding of every face in a photo.",
    "enroll": "Enrol everybody in a folder; run again, it goes on. Exit code 1 if somebody was not enrolled.",
    "identify": "Say who is in a photo: exit code 0 if everybody is known, 1 if somebody is not.",
    "collections": "List the collections.",
    "people": "List the people of a collection.",
    "forget": "Forget a person: gone from every answer once this returns.",
    "gallery": "Check, export, import, move or re-embed a gallery.",
    "backup": "Write the whole gallery into a file, as it is at this moment; servers go on.",
    "restore": "Put a backup in the place of the gallery: all of it, or nothing changes; no server may run.",
    "import-compreface": "Import from CompreFace; run again, it goes on. Exit code 1 if some is left out.",
    "audit": "Verify, export or prune the audit.",
    "pull": "Fetch published networks, or make a bundle of your own recogniser.",
    "models": "List the bundles in the data folder.",
    "demo": "Fetch three official portraits, two of one person, and compare them.",
    "evaluate": "Measure a bundle's error rates, with intervals, and write a report with curves.",
    "calibrate": "Measure a recogniser's error rates on photos of your own cameras, for your thresholds.",
    "calibrations": "List, show or remove a bundle's calibrations, or choose the one that decides.",
    "keys": "Make, list, show, rotate or revoke API keys.",
    "doctor": "Look at all that serving needs, in one page for a report: exit code 1 if something is wrong.",
    "prepare": "Cut aligned faces out of photos, to train on; run again, it goes on.",
    "synthesize": "Draw people who do not exist, and list pairs, to try training without anybody's photos.",
    "pairs": "List pairs of your own photos in the format of LFW, to measure accuracy on.",
    "train": "Train a network by a recipe; on Ctrl-C it keeps a checkpoint first.",
    "bundle": "Make a bundle of a checkpoint.",
    "quantize": "Make a recogniser of eight bits of another one: measured beside it, and a model of its own.",
}
EXTRAS = {
    "torch": "train",
    "tensorboard": "train",
    "matplotlib": "evaluate",
    "jinja2": "evaluate",
    "onnxruntime": "cpu",
    "faiss": "cpu",
    "psycopg": "postgres",
}


class LazyCommands(TyperGroup):
    """Lists the commands without their modules, and imports the module of the one that runs."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of all commands, in the order of the help."""
        return list(ROOMS)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of `sameface` itself."""
        options = super().get_params(ctx)
        hide_types_of_flags(options)
        return options

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The name and help of `cmd_name`, without its module: all that help and completion need."""
        return TyperCommand(cmd_name, help=HELP[cmd_name]) if cmd_name in ROOMS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command and its remaining arguments; commands that were called otherwise are redirected."""
        if args[0] in ("export", "import"):
            args = redirect(args)
        elif args[0] == "new-key":
            args = redirect_new_key(args)
        if args[0] in ROOMS:
            return args[0], load_command(ctx, args[0]), args[1:]
        return super().resolve_command(ctx, args)


def load_command(ctx: Any, name: str) -> Any:
    """The command `name`, out of its module."""
    command = typer.main.get_group(import_module(ROOMS[name]).app).get_command(ctx, name)
    values = read_config() if name != "serve" else {}  # which reads all of its settings itself
    for each in (command, *getattr(command, "commands", {}).values()):
        hide_types_of_flags(each.get_params(ctx))
        take_defaults(each.get_params(ctx), values)
    return command


def read_config() -> dict[str, Any]:
    """The settings of the file that SAMEFACE_CONFIG names, by their variables."""
    path = os.environ.get("SAMEFACE_CONFIG")
    if not path:
        return {}
    values = import_module("sameface.model.files").read_toml(Path(path).expanduser())
    return {f"SAMEFACE_{key.upper()}": value for key, value in values.items()}


def take_defaults(options: list[Any], values: dict[str, Any]) -> None:
    """Let every option that reads one of these variables have its value where the variable is not set."""
    for option in options:
        if option.envvar in values:
            option.default = values[option.envvar]


def redirect(args: list[str]) -> list[str]:
    """The arguments of the former `export` or `import` with the group that it is in now, which is printed."""
    group = "bundle" if any(arg.endswith(".pt") for arg in args) else "gallery"
    now = f"`sameface {args[0]}` is called `sameface {group} {args[0]}` now"
    other = "; for a checkpoint it is `sameface bundle export`" if args == ["export", "--help"] else ""
    Console(stderr=True, highlight=False).print(f"{now}{other}.", soft_wrap=True)
    return [group, *args]


def redirect_new_key(args: list[str]) -> list[str]:
    """The arguments of the former `new-key` as those of `keys create`, with the scopes that its own meant."""
    now = "`sameface new-key` is called `sameface keys create --environment` now."
    Console(stderr=True, highlight=False).print(now, soft_wrap=True)
    words = " ".join(args[1:]).replace("--scope=", "--scope ").split()
    if "--scope" not in words:
        words += ["--scope", "read+write"]
    wide = {"read": "read+search", "write": "write+admin", "read+write": "read+search+write+admin"}
    return ["keys", "create", "--environment", *(wide.get(word, word) for word in words)]


def hide_types_of_flags(options: list[Any]) -> None:
    """Let the help show no `<bool>` for flags that take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""


app = typer.Typer(
    cls=LazyCommands,
    help="Is this the same face?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:
    """Print the version and exit, if it is `wanted`."""
    if wanted:
        print(f"sameface {import_module('sameface').__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Is this the same face?"""


def main() -> None:
    """Run a command; the exit code 0 is yes or done, 1 is no, 2 is an error, printed in one sentence."""
    try:
        sys.exit(app(standalone_mode="--json" not in sys.argv))  # else usage errors are printed as they are
    except SamefaceError as error:
        fail(error.code, error.detail, **error.facts)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
            extra = EXTRAS[error.name]
            fail("not_installed", f"This needs {error.name}: in a clone, pip install '.[{extra}]'.")
        if isinstance(error, OSError) and error.filename:
            fail(FolderRefused.code, f"{error.filename} cannot be read or written: {error.strerror}.")
        if hasattr(error, "format_message"):  # click's errors, whichever click typer brings
            fail("usage", error.format_message())
        log.debug("unexpected", exc_info=True)
        fail("internal", f"{type(error).__name__}: {error}")


def fail(code: str, detail: str, **facts: Any) -> NoReturn:
    """Print the error, as JSON with its `facts` after `--json`, and exit with 2."""
    if "--json" in sys.argv:
        print(json.dumps({"code": code, "detail": detail, **facts}, default=str))
    else:
        Console(stderr=True, highlight=False).print(f"[red]{code}[/red]: {escape(detail)}", soft_wrap=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
