"""Backs a gallery up again and again into a folder, and deletes the oldest backups there."""

import logging
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sameface.model.errors import SamefaceError
from sameface.model.files import make_private_folder
from sameface.model.observer import SILENT, Observer
from sameface.model.store.store import Store
from sameface.model.upkeep.backup import back_up
from sameface.model.upkeep.backup_file import Manifest, read_manifest
from sameface.model.upkeep.errors import BackupRefused

log = logging.getLogger("sameface.backup")

LOOK_SECONDS = 60.0  # between two looks whether a backup is due
RETRY_SECONDS = 600.0  # after a backup that failed
NAME, ENDING = "sameface-", ".backup"


@dataclass(frozen=True, slots=True)
class BackupPlan:
    """Where backups go, the hours between two of them, and how many are kept."""

    folder: Path
    hours: float
    kept: int


class Stopped(Exception):
    """The server stops in the middle of a backup."""


class ScheduledBackups:
    """Makes the backups of a plan on a thread of its own; of several processes, one at a time does."""

    def __init__(self, store: Store, plan: BackupPlan, observer: Observer = SILENT) -> None:
        self.store = store
        self.plan = plan
        self.observer = observer
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sameface-backup", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; a backup that is being written is given up."""
        self._closing.set()
        self._thread.join()

    def make_due(self, now: float) -> None:
        """Make a backup if the last is as old as the plan says, and delete those that it does not keep."""
        if self._is_due(now):
            with self.store.locked("backup") as alone:
                if alone and self._is_due(now):  # another process may have made it meanwhile
                    self._make(now)
        if newest := [manifest.created_at for manifest in self.find().values()]:
            self.observer.backup(max(newest))

    def find(self) -> dict[Path, Manifest]:
        """This gallery's backups in the folder, with their manifests; without foreign and damaged files."""
        found = {}
        for path in self.plan.folder.glob(f"{NAME}*{ENDING}"):
            try:
                manifest = read_manifest(path)
            except BackupRefused:  # somebody else's file, or one that was cut: not ours to delete
                continue
            if manifest.store == self.store.id:
                found[path] = manifest
        return found

    def _is_due(self, now: float) -> bool:
        """Whether no backup was made in the last `plan.hours`; one dated in the future does not count."""
        earliest = now - 3600 * self.plan.hours
        return not any(earliest < manifest.created_at <= now for manifest in self.find().values())

    def _make(self, now: float) -> None:
        """Make a backup under the lock, and delete what a killed process left and what is not kept."""
        make_private_folder(self.plan.folder)
        for part in self.plan.folder.glob(f"{NAME}*{ENDING}.*.part"):
            part.unlink(missing_ok=True)
        name = datetime.fromtimestamp(now, UTC).strftime(f"{NAME}%Y%m%dT%H%M%SZ{ENDING}")
        made = back_up(self.store, self.plan.folder / name, self._stop_if_closing)
        log.info("backed up %d people and %d faces", made.people, made.faces)
        for path in self._find_surplus(time.time()):
            path.unlink(missing_ok=True)

    def _find_surplus(self, now: float) -> list[Path]:
        """The backups to delete: all but the newest `plan.kept`; one dated in the future counts as oldest."""
        found = self.find()

        def age(path: Path) -> tuple[bool, float]:
            made = found[path].created_at
            return made > now, now - made

        return sorted(found, key=age)[self.plan.kept :]

    def _stop_if_closing(self, *_: object) -> None:
        if self._closing.is_set():
            raise Stopped

    def _run(self) -> None:
        """Make what is due until `close`; a failure is logged, counted, and tried again later."""
        pause = 0.0
        while not self._closing.wait(pause):
            pause = LOOK_SECONDS
            try:
                self.make_due(time.time())
            except Stopped:
                return
            except Exception as reason:  # the server goes on without a backup, whatever the reason
                log.error(
                    "no backup was made: %s", reason, exc_info=not isinstance(reason, SamefaceError | OSError)
                )
                self.observer.failed_backup()
                pause = RETRY_SECONDS
