"""The store: the durable truth of who is enrolled, opened as one thing with a part per noun."""

from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection

from sameface.model.errors import StoreRefused
from sameface.model.files import exclusive_lock
from sameface.model.store.changes import Changes
from sameface.model.store.collections import Collections
from sameface.model.store.database import Database
from sameface.model.store.idempotency import IdempotencyKeys
from sameface.model.store.migrations import migrate
from sameface.model.store.people import People
from sameface.model.store.sqlite import DATABASE_ERRORS, describe_damage, describe_reason, is_read_only


class Store:
    """Collections, people, faces and their changes: one writer at a time, any number of readers.

    Each part (`collections`, `people`, ...) runs one transaction per call. `writing()` and `frozen()` are for
    callers that need several steps in one transaction, with the functions of the parts' modules.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = Database(path)
            # Two processes that create the database at the same moment would find it locked.
            with exclusive_lock(path.with_suffix(".opening"), wait=True), self.writing() as connection:
                self.id = migrate(connection)
        except OSError as error:
            raise StoreRefused(f"{path} cannot be opened: {error.strerror}.") from error
        except DATABASE_ERRORS as error:
            if describe_damage(error) is None and not is_read_only(error):
                raise
            raise StoreRefused(
                f"{path} cannot be opened: {describe_reason(error)}. `sameface gallery check` says more."
            ) from error
        self.collections = Collections(self._database)
        self.people = People(self._database)
        self.changes = Changes(self._database)
        self.idempotency_keys = IdempotencyKeys(self._database)

    def frozen(self) -> AbstractContextManager[Connection]:
        """One snapshot for everything that this thread reads in the block."""
        return self._database.pinned()

    def writing(self) -> AbstractContextManager[Connection]:
        """One write transaction for the block."""
        return self._database.writing()

    def close(self) -> None:
        """Close the database."""
        self._database.close()
