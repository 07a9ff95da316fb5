"""Backs up a whole gallery while it is in use, and puts a backup in a gallery's place."""

import time
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from sameface.model.errors import SamefaceError, StoreRefused
from sameface.model.files import exclusive_lock, replacing, sync_folder
from sameface.model.gallery.index.faiss.snapshot import delete_snapshots
from sameface.model.observer import Progress, ignore_progress
from sameface.model.store.databases.migrations import read_version
from sameface.model.store.databases.sqlite import copy_database, find_damage, leave_log, reading_file
from sameface.model.store.databases.sqlite_database import lock_of
from sameface.model.store.soundness import count_everything
from sameface.model.store.store import Store
from sameface.model.upkeep.backup_file import VERSION, Manifest, hash_backup, read_manifest, write_manifest
from sameface.model.upkeep.errors import BackupRefused


def back_up(
    store: Store, path: Path, progress: Progress = ignore_progress, *, replace: bool = False
) -> Manifest:
    """Write one moment of the whole gallery into a file that only its owner may read.

    Writers go on meanwhile. A copy that is not sound is not kept: it would outlive the sound ones.
    """
    if not isinstance(store.place, Path):
        raise BackupRefused("A gallery in PostgreSQL is backed up by its own tools: pg_dump.")
    if path.exists() and not replace:
        raise BackupRefused(f"{path} exists already: choose another name, or --replace.")
    try:
        with replacing(path, private=True) as file:
            file.truncate(0)
            manifest = copy_store(store, file, progress)
            return write_manifest(file, manifest)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be written: {error.strerror}.") from error


def copy_store(store: Store, file: BinaryIO, progress: Progress) -> Manifest:
    """Copy one moment of the store into `file`; returns its manifest, as yet without the hash."""
    part = Path(file.name)
    with store.frozen() as connection:
        collections, people, faces = count_everything(connection)
        store_version, created_at = read_version(connection), time.time()
        copy_database(connection, part, lambda done, total: progress("copying", done, total))
    refuse_damaged(part, "The gallery")
    return Manifest(
        VERSION,
        store.id,
        store_version,
        version("sameface"),
        created_at,
        collections,
        people,
        faces,
        part.stat().st_size,
    )


def restore(
    path: Path, gallery: Path, progress: Progress = ignore_progress, *, replace: bool = False
) -> Manifest:
    """Make the file `gallery` what the backup `path` holds: all of it, or it stays as it is.

    Nobody may have the gallery open, and whoever opens it meanwhile is refused.
    """
    manifest = read_manifest(path)
    try:
        with exclusive_lock(lock_of(gallery)) as alone:
            if not alone:
                raise StoreRefused(f"{gallery} is in use: stop the server, or the command, that has it open.")
            refuse_existing(gallery, replace=replace)
            for part in gallery.parent.glob(f"{gallery.name}.*.part"):  # left by a restore that was killed
                part.unlink(missing_ok=True)
            with replacing(gallery, private=True) as file:
                unpack(path, manifest, file, progress)
                clear_place(gallery)
    except OSError as error:
        raise BackupRefused(f"{gallery} cannot be restored: {error.strerror}.") from error
    return manifest


def refuse_existing(gallery: Path, *, replace: bool) -> None:
    """Raise if there is a gallery already, unless it is to be replaced."""
    if gallery.exists() and not replace:
        raise BackupRefused(
            f"There is a gallery in {gallery.parent} already: choose another --data, or --replace it."
        )


def unpack(path: Path, manifest: Manifest, file: BinaryIO, progress: Progress) -> None:
    """Copy the database of a backup into `file`, and raise if it is not what was backed up."""

    def put(chunk: bytes) -> None:
        file.write(chunk)
        progress("restoring", file.tell(), manifest.bytes)

    with path.open("rb") as backup:
        if hash_backup(backup, manifest, put) != manifest.sha256:
            raise BackupRefused(f"{path} is damaged, its checksum is wrong: copy it again, or take another.")
    file.flush()
    refuse_damaged(Path(file.name), str(path))


def refuse_damaged(part: Path, what: str) -> None:
    """Raise if SQLite finds a fault in the copy `part` of `what`."""
    try:
        with reading_file(part) as connection:
            faults = find_damage(connection)
            read_version(connection)
    except SamefaceError as error:
        faults = [str(error.facts.get("reason", error.detail))]
    if faults:
        raise BackupRefused(f"{what} is damaged ({faults[0]}): `sameface gallery check` says more.")


def clear_place(gallery: Path) -> None:
    """Delete the old gallery's log and snapshots, which would be read together with the restored file.

    The old gallery is whole without them, should this process be killed before the file is in its place.
    """
    if gallery.exists():
        leave_log(gallery)
    for end in ("-wal", "-shm"):  # a damaged gallery keeps them: the new one would read them
        gallery.with_name(gallery.name + end).unlink(missing_ok=True)
    delete_snapshots(gallery)
    sync_folder(gallery.parent)
