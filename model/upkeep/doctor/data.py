"""Looks at what is kept: the data folder and its disk, the store, the snapshots of indexes, the clock."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from sameface.model.data_folder import DataFolder
from sameface.model.errors import SamefaceError
from sameface.model.gallery.index.faiss.collection_indexes import open_indexes
from sameface.model.gallery.index.faiss.snapshot import read_sequence
from sameface.model.store.databases.file_report import report_file
from sameface.model.store.store import Store
from sameface.model.upkeep.doctor.observation import Observation, write_bytes

LEAST_FREE = 1_000_000_000  # bytes of a disk that may be full soon
LEAST_YEAR = 2025  # before it, this was not written
CLOCK_SECONDS = 60.0  # that a file may be younger than now


def examine_folder(folder: DataFolder) -> Iterator[Observation]:
    """Whether the data folder can be written, and the space on its disk."""
    root = folder.root.expanduser()
    nearest = next(path for path in (root, *root.absolute().parents) if path.exists())
    state = "there" if root.is_dir() else "not there yet"
    fault = None
    if not nearest.is_dir():
        fault = f"{nearest} is no folder: name another with --data"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        state, fault = f"{state}, read-only", "it cannot be written: give it to the user that serves"
    yield Observation("data", "folder", f"{folder.root}, {state}", fault)
    disk = shutil.disk_usage(nearest)
    full = "the disk is almost full: make room, or enrolments will be refused"
    free = f"{write_bytes(disk.free)} free of {write_bytes(disk.total)}"
    yield Observation("data", "disk", free, full if disk.free < LEAST_FREE else None)


def examine_store(folder: DataFolder) -> Iterator[Observation]:
    """The store's file: its version, sizes and soundness; then the snapshots, if it can be opened."""
    path = folder.gallery_file
    if folder.database:
        yield Observation("store", "database", "PostgreSQL: `sameface gallery check` looks into it")
        return
    if not has_store(folder):
        yield Observation("store", "file", "none yet")
        return
    size = write_bytes(sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*")))
    try:
        yield from examine_file(path, size)
    except (SamefaceError, OSError) as error:
        detail = error.detail if isinstance(error, SamefaceError) else f"{error.strerror}: restore a backup"
        yield Observation("store", "file", f"{size}, cannot be read", detail)


def has_store(folder: DataFolder) -> bool:
    """Whether there is a store's file; False if its folder is none."""
    path = folder.gallery_file
    return not folder.database and path.parent.is_dir() and path.exists()


def examine_file(path: Path, size: str) -> Iterator[Observation]:
    """What is in the store's file; raises if it cannot be read."""
    report = report_file(path)
    older = "" if report.is_current else ", which the next start brings up to date"
    yield Observation("store", "file", f"{size}, version {report.version}{older}")
    counted = f"collections: {report.collections}, people: {report.people}, faces: {report.faces}"
    yield Observation("store", "content", counted)
    damage = f"{'; '.join(report.damage)}: stop the server and restore a backup" if report.damage else None
    yield Observation("store", "soundness", "damaged" if damage else "passes SQLite's quick check", damage)
    if report.is_current and not damage:
        yield from examine_indexes(path)


def examine_indexes(path: Path) -> Iterator[Observation]:
    """How many collections have a snapshot of their index, and how many changes those lack."""
    with closing(Store(path)) as store:
        indexes, stored = open_indexes(store), store.collections.page()
        saved = [read_sequence(indexes.path_of(each), indexes.owner_of(each)) for each in stored]
    lags = [each.revision - number for each, number in zip(stored, saved, strict=True) if number >= 0]
    size = write_bytes(sum(each.stat().st_size for each in path.with_name("indexes").glob("*")))
    behind = f", changes that they lack: {sum(lags)}" if any(lags) else ""
    yield Observation("store", "snapshots", f"{len(lags)}, {size}{behind}")


def examine_index(folder: DataFolder) -> Iterator[Observation]:
    """What searches, and whether Milvus answers; where it is is not shown: an address may hold a password."""
    if folder.milvus is None:
        yield Observation("index", "engine", "FAISS, in the memory of each process")
        return
    try:
        from sameface.model.gallery.index.milvus.faces_in_milvus import FacesInMilvus

        with closing(FacesInMilvus(folder.milvus, "", 0)) as faces:
            yield Observation("index", "engine", f"Milvus {faces.read_version()}")
    except ModuleNotFoundError:
        yield Observation("index", "engine", "Milvus", "its client is missing: install the extra `milvus`")
    except SamefaceError as error:
        yield Observation("index", "engine", "Milvus", error.detail)


def examine_clock(folder: DataFolder) -> Iterator[Observation]:
    """The time, and whether it is before what was written last."""
    now, written = time.time(), 0.0
    if has_store(folder):
        written = folder.gallery_file.stat().st_mtime
    at = datetime.fromtimestamp(now, UTC)
    fault = None
    if at.year < LEAST_YEAR or written > now + CLOCK_SECONDS:
        fault = "the clock is behind: set it, because keys expire and retries are remembered by it"
    zone = time.strftime("%Z")
    yield Observation("clock", "now", f"{at:%Y-%m-%d %H:%M:%S} UTC, local zone {zone}", fault)
