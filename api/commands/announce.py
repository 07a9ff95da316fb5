"""What a server says once it is ready: where it answers, and a first command to try."""

import json
import socket

from fastapi import FastAPI

from sameface.api.server.tls import Certificate
from sameface.api.settings import Settings
from sameface.model.bundles.published import PORTRAITS


def announce(
    application: FastAPI, listener: socket.socket, certificate: Certificate | None, as_json: bool
) -> None:
    """Print the server's address, with a first command to try or, if `as_json`, with the device."""
    settings: Settings = application.state.settings
    runtime = application.state.pipeline.embedder.sessions
    address, options = describe_address(settings, listener, certificate)
    if as_json:
        described = {"address": address, "device": runtime.device, "provider": runtime.provider}
        if settings.unix_socket:
            described["unix_socket"] = listener.getsockname()
        print(json.dumps(described), flush=True)
        return
    first, second, *_ = (settings.folder.demo / portrait.name for portrait in PORTRAITS)
    photos = (first, second) if first.exists() and second.exists() else ("one.jpg", "another.jpg")
    where = f"the Unix socket {listener.getsockname()}" if settings.unix_socket else address
    shown = f", its documentation is at {address}/docs" if settings.docs == "public" else ""
    print(f"\nsameface answers on {where}{shown}. Try:\n")
    files = f"-F probe=@{photos[0]} -F reference=@{photos[1]}"
    print(f"  curl {options}{files} {address}/v1/verify\n", flush=True)


def describe_address(
    settings: Settings, listener: socket.socket, certificate: Certificate | None
) -> tuple[str, str]:
    """The address that reaches the server from this machine, and the options that curl needs for it."""
    name, options = "localhost" if settings.unix_socket else settings.host, ""
    if certificate:
        options = f"--cacert {certificate.certificate} "
    if certificate and certificate.names and name not in certificate.names:
        name = certificate.names[0]  # which the DNS may lead elsewhere, and the server may not be called by
        options += "-H 'Host: localhost' "
    scheme = "https" if certificate else "http"
    if settings.unix_socket:
        return f"{scheme}://{bracket(name)}", f"{options}--unix-socket {listener.getsockname()} "
    port = listener.getsockname()[1]
    if name != settings.host:
        options += f"--connect-to ::{bracket(settings.host)}:{port} "
    return f"{scheme}://{bracket(name)}:{port}", options


def bracket(host: str) -> str:
    """The host as addresses have it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
