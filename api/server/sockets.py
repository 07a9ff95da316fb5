"""The listening socket: of an address and a port, or of a file."""

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from sameface.api.settings import Settings
from sameface.model.errors import CannotServe

UMASK = 0o117  # a Unix socket is made with mode 660: for its owner and group


def listen(settings: Settings) -> socket.socket:
    """The listening socket; raises CannotServe with the reason if it cannot be bound."""
    if settings.unix_socket:
        return listen_on_file(settings.unix_socket.expanduser())
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # Python's own words repeat the address
        raise CannotServe(
            f"Cannot listen on {settings.host}, port {settings.port}: {reason}. Try another --port."
        ) from error


def listen_on_file(path: Path) -> socket.socket:
    """A Unix socket listening at `path`, in place of one that a dead server has left there."""
    try:
        remove_dead_socket(path)
        return bind_file(path)
    except OSError as error:
        raise CannotServe(f"Cannot listen on {path}: {error.strerror or error}.") from error


def bind_file(path: Path) -> socket.socket:
    """A Unix socket listening at `path`, which has its mode from the beginning."""
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(UMASK)
    try:
        listener.bind(str(path))
        listener.listen()
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def remove_dead_socket(path: Path) -> None:
    """Remove the socket that nobody listens on; raises CannotServe if somebody does, or it is no socket."""
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        kind = "a folder" if path.is_dir() else "no socket"
        raise CannotServe(f"Cannot listen on {path}: it is {kind}. Name a file that does not exist yet.")
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise CannotServe(f"Cannot listen on {path}: another server does. Stop it, or name another file.")


def remove_socket_file(listener: socket.socket) -> None:
    """Remove the file of a Unix socket, so that nobody waits at it; nothing happens for a port."""
    if listener.family == socket.AF_UNIX and listener.fileno() >= 0:
        with suppress(FileNotFoundError):
            Path(listener.getsockname()).unlink()
