"""`sameface new-key`: a secret for a client, and its hash for the server."""

import json
from typing import Annotated, Literal

import typer
from rich.console import Console

from sameface.api.access.keys import make_key
from sameface.api.commands.flags import AsJson
from sameface.api.settings import PREFIX

console = Console(highlight=False)
app = typer.Typer()


@app.command("new-key")
def new_key(
    scope: Annotated[
        Literal["read", "write", "read+write"], typer.Option(help="What it may do.")
    ] = "read+write",
    as_json: AsJson = False,
) -> None:
    """Make an API key: the key for the client, and its hash for the server."""
    secret, entry = make_key(scope)
    if as_json:
        print(json.dumps({"key": secret, "entry": entry}))
        return
    console.print(f"The client sends    Authorization: Bearer {secret}", soft_wrap=True)
    console.print(f"The server knows    {PREFIX}API_KEYS={entry}", soft_wrap=True)
    console.print("The key is shown this once and kept nowhere.")
