"""Atomic writes, hashes of files, TOML files, and locks between processes."""

import fcntl
import hashlib
import os
import secrets
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from sameface.model.errors import CannotServe


def read_toml(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file; raises CannotServe with the line that is no TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CannotServe(f"Cannot read the settings in {path}: {error.strerror}.") from error
    except ValueError as error:  # of TOML or of UTF-8
        raise CannotServe(f"{path} is not TOML: {error}.") from error


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a temporary file to write; it replaces `path` when the block ends without an error.

    Only the owner may read a `private` file.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open_private(part) if private else part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Write a folder's names to the disk, so that a file that was renamed stays so after a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_private(path: Path) -> BinaryIO:
    """Open a file to write, its content kept, that only its owner may read and write."""

    def make(name: str, _: int) -> int:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.fchmod(descriptor, 0o600)  # it may have been there, readable by others
        return descriptor

    return open(path, "wb", opener=make)


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner may read and write; one that exists gets this mode.

    The file at `path` itself is never opened: closing it would drop all locks that SQLite holds on it in this
    process, and another process could then delete the write-ahead log under it.
    """
    if path.exists():
        path.chmod(0o600)
        return
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        open_private(part).close()
        with suppress(FileExistsError):  # another process was faster
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it, that only their owner may enter; existing ones stay as they are."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file so that `path` has all of `content` or what it had before, also after a power cut."""
    with replacing(path) as file:
        file.write(content)


def hash_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def exclusive_lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Take an exclusive lock on the file `path`. Yields False if another process holds it, unless `wait`."""
    make_private_folder(path.parent)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def make_exclusive(file: BinaryIO) -> bool:
    """Make the shared lock on an open file an exclusive one; returns False, and leaves it shared, if another
    process has a lock on it, too."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, fcntl.LOCK_SH)
        return False
    return True


def hold_shared_lock(path: Path) -> BinaryIO:
    """Open the file `path` with a shared lock, which other processes may hold too until it is closed.

    Raises BlockingIOError if a process holds the lock exclusively.
    """
    file = path.open("rb" if path.exists() else "ab")  # where nothing may be written, it can still be held
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file
