"""The commands of the server's room: `serve` and `new-key`."""

import inspect
import json
import logging
import math
import socket
from collections.abc import Callable
from typing import Annotated, Any, get_origin

import typer
import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError
from rich.console import Console

from api.app import create_app
from api.errors import name_field
from api.keys import SCOPES, make_key
from api.settings import PREFIX, Settings
from model.published import PORTRAITS

console = Console()
app = typer.Typer()


def take_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """Give a command one flag per setting; what is not given comes from the environment."""

    def run(**flags: Any) -> None:
        given = {name: value for name, value in flags.items() if value is not None}
        try:
            settings = Settings(**given)
        except ValidationError as error:
            for problem in error.errors():
                console.print(f"[red]{PREFIX}{name_field(problem).upper()}[/red]: {problem['msg']}")
            raise typer.Exit(2) from None
        command(settings)

    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature([to_flag(name) for name in Settings.model_fields])  # type: ignore[attr-defined]
    return run


def to_flag(name: str) -> inspect.Parameter:
    """A setting as a flag that names its variable and its default."""
    field = Settings.model_fields[name]
    kind: Any = str if get_origin(field.annotation) is tuple else field.annotation
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"{PREFIX}{name.upper()}",
        help=field.description,
        show_default=str(field.default) if field.default else False,
    )
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


@app.command("serve")
@take_settings
def serve(settings: Settings) -> None:
    """Serve over HTTP; every flag can also be set in the environment."""
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    refuse_open_door(settings)
    listener = listen(settings)
    application = create_app(settings, lambda application: on_loaded(application, server, listener))
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            log_config=None,
            log_level=settings.log_level,
            server_header=False,
            timeout_graceful_shutdown=math.ceil(settings.request_seconds),
        )
    )
    server.run(sockets=[listener])
    if application.state.failure:
        raise typer.Exit(2)


def refuse_open_door(settings: Settings) -> None:
    """Faces are nobody's business: a server without keys stays on this machine unless told otherwise."""
    if settings.is_loopback or settings.api_keys or settings.listen_without_keys:
        return
    console.print(
        f"[red]Refusing to listen on {settings.host} without API keys.[/red] Set {PREFIX}API_KEYS "
        "(`sameface new-key` makes one), or say --listen-without-keys if anyone who reaches it may use it."
    )
    raise typer.Exit(2)


def listen(settings: Settings) -> socket.socket:
    """The listening socket, or a sentence about why there is none."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        console.print(
            f"[red]Cannot listen on {settings.host}:{settings.port}[/red]: {error.strerror}. Try --port."
        )
        raise typer.Exit(2) from None


def on_loaded(application: FastAPI, server: uvicorn.Server, listener: socket.socket) -> None:
    """Show a newcomer what to try, or stop if there is nothing to serve with."""
    settings: Settings = application.state.settings
    if application.state.failure:
        server.should_exit = True
        return
    first, second, *_ = (settings.folder.demo / portrait.name for portrait in PORTRAITS)
    photos = (first, second) if first.exists() and second.exists() else ("one.jpg", "another.jpg")
    address = f"http://{settings.host}:{listener.getsockname()[1]}"
    console.print(
        f"\n[bold]sameface answers on {address}[/bold], its documentation is at {address}/docs. Try:\n"
    )
    console.print(
        f"  curl -F probe=@{photos[0]} -F reference=@{photos[1]} {address}/v1/verify\n", soft_wrap=True
    )


@app.command("new-key")
def new_key(
    scope: Annotated[
        list[str], typer.Option(help="What the key may do: read, write; repeat for both.")
    ] = list(SCOPES),  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make an API key: the key for the client, and its hash for the server."""
    if unknown := sorted(set(scope) - set(SCOPES)):
        console.print(f"[red]Unknown scope {', '.join(unknown)}[/red]; there are {', '.join(SCOPES)}.")
        raise typer.Exit(2)
    secret, entry = make_key(sorted(set(scope)))
    if as_json:
        print(json.dumps({"key": secret, "entry": entry}))
        return
    console.print(f"The client sends    Authorization: Bearer {secret}", soft_wrap=True)
    console.print(f"The server knows    {PREFIX}API_KEYS={entry}", soft_wrap=True)
    console.print("The key is shown this once and kept nowhere.")
