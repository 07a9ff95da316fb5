"""The command that trains a network."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.logging import RichHandler
from rich.markup import escape

from sameface.model.commands.console.options import AsJson, Data, by_name
from sameface.model.commands.console.terminal import console, print_json, screen
from sameface.model.data_folder import DEFAULT_DATA, DataFolder

if TYPE_CHECKING:
    from sameface.training.loop.train import Outcome

app = typer.Typer(callback=by_name)


@app.command("train")
def train_recipe(
    recipe: Annotated[Path, typer.Argument(help="A TOML file: see training/recipes.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/NAME if not given.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the folder's last checkpoint.")
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe: schedule.batch=64."),
    ] = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Train a network by a recipe; on Ctrl-C it keeps a checkpoint first."""
    # Imported here because they load torch, which listing the commands does not need.
    from sameface.training.loop.train import train
    from sameface.training.recipe import read_recipe

    logging.basicConfig(
        level="INFO", format="%(message)s", handlers=[RichHandler(console=screen, show_path=False)]
    )
    read = read_recipe(recipe, changes or ())
    outcome = train(read, out or Path("runs") / read.name, DataFolder(data), resume=resume)
    if as_json:
        print_json(outcome)
    else:
        console.print(describe(outcome), soft_wrap=True)
    raise typer.Exit(128 + outcome.stopped_by if outcome.stopped_by else 0)


def describe(outcome: "Outcome") -> str:
    """How the run ended, and the command to run next."""
    kept = f"{outcome.images:,} images, kept in [green]{escape(str(outcome.checkpoint))}[/green]"
    if outcome.stopped_by:
        return f"Stopped after {kept}. Go on with --resume."
    measured = "" if outcome.accuracy is None else f", {outcome.accuracy:.2%} of the pairs right"
    export = f"sameface bundle export {escape(str(outcome.checkpoint))}"
    return f"Trained on {kept}{measured}. Make a bundle: {export}"
