"""`sameface serve`: one server, or several processes that share its socket."""

import logging
import math
import os
import resource
import signal
import socket
from collections.abc import Iterator
from difflib import get_close_matches

import typer
import uvicorn
from fastapi import FastAPI

from sameface.api.app import create_app, load_parts
from sameface.api.commands.announce import announce
from sameface.api.commands.flags import take_settings
from sameface.api.logs import start_logging
from sameface.api.metrics import counting_together
from sameface.api.secret_files import ENDING, SECRETS
from sameface.api.server.connections import RESERVED_FILES, limit_connections
from sameface.api.server.draining import DrainingServer
from sameface.api.server.sockets import listen, remove_socket_file
from sameface.api.server.tls import Certificate, load_certificate
from sameface.api.server.worker_processes import Supervisor
from sameface.api.settings import PREFIX, Settings
from sameface.model.access.secret_key import FILE_VARIABLE, VARIABLE
from sameface.model.errors import CannotServe
from sameface.model.runtime.memory import keep_what_is_loaded, use_few_arenas
from sameface.model.store.access.keys import peek_keys

log = logging.getLogger("sameface")
app = typer.Typer()


@app.command("serve")
@take_settings
def serve(settings: Settings, as_json: bool) -> None:
    """Serve over HTTP; flags may also be variables, --port as SAMEFACE_PORT, or keys of a TOML file."""
    start_logging(settings.log_level, settings.log_format)
    use_few_arenas()
    warn_of_unknown_variables()
    refuse_open_door(settings)
    refuse_few_files()
    certificate = load_certificate(settings)
    listener = listen(settings)
    try:
        serve_on(settings, listener, certificate, as_json)
    finally:
        remove_socket_file(listener)


def serve_on(
    settings: Settings, listener: socket.socket, certificate: Certificate | None, as_json: bool
) -> None:
    """Serve on `listener`, in this process or in workers, until a signal stops it."""

    def reload() -> None:
        if certificate:
            certificate.reload()
        else:
            log.info("SIGHUP reloads the certificate, and there is none: nothing is done")

    on_hangup = reload if certificate or not os.isatty(0) else None  # a plain server ends with its terminal
    if settings.workers == 1:
        if on_hangup:
            signal.signal(signal.SIGHUP, lambda *_: reload())
        run_server(settings, listener, certificate, as_json)
        return
    with counting_together() as forget:
        Supervisor(
            settings.workers,
            lambda place: run_server(settings, listener, certificate, as_json, announced=place == 0),
            on_gone=forget,
            on_hangup=on_hangup,
        ).run()


def run_server(
    settings: Settings,
    listener: socket.socket,
    certificate: Certificate | None,
    as_json: bool,
    *,
    announced: bool = True,
) -> None:
    """Serve on `listener` until a signal stops the process; `announced` prints the address once ready."""

    def on_loaded(application: FastAPI) -> None:
        if application.state.failure:
            server.should_exit = True
            return
        keep_what_is_loaded()
        if announced and not server.should_exit:  # a server that was stopped meanwhile listens no more
            announce(application, listener, certificate, as_json)

    application = create_app(settings, on_loaded)
    if settings.workers > 1:  # a worker takes connections from the others only once it can answer them
        load_parts(application)
        if application.state.failure:
            raise application.state.failure
    server = DrainingServer(configure(application, certificate), application, settings.drain_seconds)
    server.run(sockets=[listener])
    if application.state.failure:
        raise application.state.failure


def configure(application: FastAPI, certificate: Certificate | None) -> uvicorn.Config:
    """The configuration of uvicorn for the settings of `application`, with TLS if there is a certificate."""
    settings: Settings = application.state.settings
    config = uvicorn.Config(
        application,
        log_config=None,
        log_level=settings.log_level,
        server_header=False,
        date_header=False,
        http=limit_connections(settings, application.state.metrics),
        ws="none",
        access_log=False,  # it has paths, with the ids in them: the middleware logs routes
        proxy_headers=False,  # api/middleware/forwarded.py knows whom to believe
        timeout_graceful_shutdown=math.ceil(settings.request_seconds),
    )
    if certificate:
        config.load()
        config.ssl = certificate.context
    return config


def warn_of_unknown_variables() -> None:
    """Log every variable that looks like a setting and is none."""
    for fault in find_unknown_variables():
        log.warning("%s", fault)


def find_unknown_variables() -> Iterator[str]:
    """A sentence for every variable that looks like a setting and is none, with what may be meant."""
    known = {name.upper() for name in (*Settings.model_fields, *(f"{name}{ENDING}" for name in SECRETS))}
    known |= {name.removeprefix(PREFIX) for name in (VARIABLE, FILE_VARIABLE)}
    for variable in sorted(name for name in os.environ if name.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX)
        if name not in known:
            meant = [f"; did you mean {PREFIX}{each}?" for each in get_close_matches(name, known, 1, 0.7)]
            yield f"{variable} is set, and there is no such setting{''.join(meant)}"


def refuse_open_door(settings: Settings) -> None:
    """Refuse to listen off loopback without API keys, unless `listen_without_keys` is set."""
    if settings.is_loopback or settings.api_keys or settings.listen_without_keys:
        return
    if not peek_keys(settings.folder.gallery):
        raise CannotServe(
            f"Refusing to listen on {settings.host} without API keys. Make one (`sameface keys create`), "
            "or say --listen-without-keys if anyone who reaches it may use it."
        )


def refuse_few_files() -> None:
    """Refuse to start with no file descriptor left for a connection."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most <= RESERVED_FILES:
        raise CannotServe(
            f"A process may open {most} files here. A server needs {RESERVED_FILES}, and one per connection: "
            "raise `ulimit -n`."
        )
