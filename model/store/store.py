"""The store: the durable truth of who is enrolled, opened as one thing with a part per noun."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection

from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import StoreRefused
from sameface.model.store.access.audit import Audit
from sameface.model.store.access.keys import Keys
from sameface.model.store.access.leases import Leases
from sameface.model.store.access.seals import Seals
from sameface.model.store.calibrations import OwnCalibrations
from sameface.model.store.changes import Changes
from sameface.model.store.collections import Collections
from sameface.model.store.databases.database import OPENING, StillHeld
from sameface.model.store.databases.migrations import (
    migrate,
    read_about,
    refuse_moving,
    refuse_other_version,
)
from sameface.model.store.databases.opening import open_database
from sameface.model.store.feeds import Feeds
from sameface.model.store.followers import Followers
from sameface.model.store.idempotency import IdempotencyKeys
from sameface.model.store.people.lookups import Lookups
from sameface.model.store.people.people import People
from sameface.model.store.people.users import Users
from sameface.model.store.people.wholesale import Wholesale


class Store:
    """Collections, people, faces and their changes: one writer at a time, any number of readers.

    Each part (`collections`, `people`, ...) runs one transaction per call. `writing()` and `frozen()` are for
    callers that need several steps in one transaction, with the functions of the parts' modules.
    """

    def __init__(self, place: GalleryPlace) -> None:
        self.place = place
        try:
            self._database = open_database(place)
            try:
                self.id = self._prepare()
            except BaseException:
                self._database.close()
                raise
        except OSError as error:
            raise StoreRefused(f"{place} cannot be opened: {error.strerror}.") from error
        self.collections = Collections(self._database)
        self.people = People(self._database)
        self.lookups = Lookups(self._database)
        self.users = Users(self._database)
        self.wholesale = Wholesale(self._database)
        self.changes = Changes(self._database)
        self.feeds = Feeds(self._database)
        self.followers = Followers(self._database)
        self.idempotency_keys = IdempotencyKeys(self._database)
        self.calibrations = OwnCalibrations(self._database)
        self.keys = Keys(self._database)
        self.leases = Leases(self._database)
        self.audit = Audit(self._database)
        self.seals = Seals(self._database)

    @property
    def read_only(self) -> bool:
        """Whether the file or its folder may only be read."""
        return self._database.read_only

    @property
    def folder(self) -> Path:
        """The folder in which this machine keeps its caches of the store."""
        return self._database.folder_of(self.id)

    def refuse_read_only(self) -> None:
        """Raise if nothing can be written."""
        self._database.refuse_read_only()

    def refuse_unreadable(self) -> None:
        """Read one row, and raise if that fails."""
        with self._database.newest() as connection:
            read_about(connection, "store")

    def frozen(self) -> AbstractContextManager[Connection]:
        """One snapshot for everything that this thread reads in the block."""
        return self._database.pinned()

    def writing(self, *, patient: bool = False, alone: bool = False) -> AbstractContextManager[Connection]:
        """One write transaction for the block; `patient` and `alone` as `Database.writing` has them."""
        return self._database.writing(patient=patient, alone=alone)

    def locked(self, name: str, *, wait: bool = False) -> AbstractContextManager[StillHeld | None]:
        """Hold the lock `name` between all processes, as `Database.locked` says."""
        return self._database.locked(name, wait=wait)

    def find_damage(self, connection: Connection) -> list[str]:
        """The faults that the database finds in its own files."""
        return self._database.find_damage(connection)

    def count_orphans(self, connection: Connection) -> int:
        """The number of rows whose foreign key leads nowhere."""
        return self._database.count_orphans(connection)

    def forget_log_soon(self) -> None:
        """Empty the write-ahead log soon: a killed process may have left there what it deleted."""
        self._database.forget_log_soon()

    def listen(self, hear: Callable[[int], None], closing: threading.Event) -> None:
        """Call `hear` with the key of each collection that others change, until `closing` is set."""
        self._database.listen(hear, closing)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _prepare(self) -> str:
        """Migrate the database, or raise if it is read-only and of another version; returns its id."""
        if self.read_only:
            with self._database.reading() as connection:
                refuse_other_version(connection)
                refuse_moving(connection)
                return read_about(connection, "store")
        # Two processes that create the database at the same moment would find it locked.
        with self.locked(OPENING, wait=True), self.writing(patient=True) as connection:
            store_id = migrate(connection)
            refuse_moving(connection)
            return store_id
