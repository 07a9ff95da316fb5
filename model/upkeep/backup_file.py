"""A backup as a file: the gallery's database, and after it a manifest that says what it is.

The manifest is JSON, padded with spaces to `MANIFEST_BYTES`, at the end of the file. It has the SHA-256 of
the database and of its own other fields.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from sameface.model.faces import Value
from sameface.model.store.databases.migrations import VERSION as STORE_VERSION
from sameface.model.upkeep.errors import BackupRefused

KIND, VERSION = "backup", 1
MANIFEST_BYTES = 1024
CHUNK_BYTES = 1 << 20
SQLITE, GZIP = b"SQLite format 3\0", b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Manifest(Value):
    """What is in a backup, and who made it when."""

    version: int
    store: str  # the random id of the gallery
    store_version: int
    sameface: str  # the version that made it
    created_at: float
    collections: int
    people: int
    faces: int
    bytes: int  # of the database
    sha256: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not isinstance(getattr(self, field.name), field.type):  # type: ignore[arg-type]
                raise TypeError(field.name)


def write_manifest(file: BinaryIO, manifest: Manifest) -> Manifest:
    """Write the manifest behind the database in `file`; returns it with the SHA-256."""
    with Path(file.name).open("rb") as database:
        sealed = replace(manifest, sha256=hash_backup(database, manifest))
    file.seek(manifest.bytes)
    file.write(json.dumps({"kind": KIND} | asdict(sealed)).encode().ljust(MANIFEST_BYTES))
    return sealed


def read_manifest(path: Path) -> Manifest:
    """The manifest of a backup; raises if the file is none, is cut short, or is of a newer version."""
    try:
        with path.open("rb") as file:
            first, size = file.read(len(SQLITE)), os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MANIFEST_BYTES))
            last = file.read(MANIFEST_BYTES)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read: {error.strerror}.") from error
    if first.startswith(GZIP):
        raise BackupRefused(
            f"{path} is no backup. A collection's export is read by `sameface gallery import`."
        )
    if first != SQLITE:
        raise BackupRefused(f"{path} is no backup: `sameface backup` writes one.")
    try:
        found = json.loads(last)
        if found["kind"] != KIND:
            raise ValueError("kind")
        refuse_newer(path, found)
        manifest = Manifest(**{field.name: found[field.name] for field in fields(Manifest)})
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BackupRefused(
            f"{path} is cut short, or no backup: copy it again from where it was made."
        ) from error
    if size != manifest.bytes + MANIFEST_BYTES:
        raise BackupRefused(f"{path} has lost bytes, or has too many: copy it again from where it was made.")
    return manifest


def refuse_newer(path: Path, found: dict[str, Any]) -> None:
    """Raise if this sameface knows less than the one that made the backup."""
    for what, field, known in (("backup", "version", VERSION), ("gallery", "store_version", STORE_VERSION)):
        if found[field] > known:
            raise BackupRefused(
                f"{path} is a {what} of version {found[field]}, made by sameface {found['sameface']}, and "
                f"this sameface knows {known}: install a newer one."
            )


def hash_backup(
    database: BinaryIO, manifest: Manifest, take: Callable[[bytes], object] = lambda _: None
) -> str:
    """The SHA-256 of the database and of the manifest's other fields; each chunk is also given to `take`."""
    digest, left = hashlib.sha256(), manifest.bytes
    while chunk := database.read(min(CHUNK_BYTES, left)):
        digest.update(chunk)
        take(chunk)
        left -= len(chunk)
    digest.update(json.dumps(asdict(replace(manifest, sha256=""))).encode())
    return digest.hexdigest()
