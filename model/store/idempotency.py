"""Idempotency keys in the store: the first response to a request, kept for a day for its retries."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select, tuple_

from sameface.model.store.databases.database import Database, Now
from sameface.model.store.databases.tables import remembered_responses
from sameface.model.store.records import Collection, RememberedResponse

KEPT_SECONDS = 24 * 3600


class IdempotencyKeys:
    """The responses that retries get, by idempotency key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, collection: Collection, keys: Sequence[str]) -> dict[str, RememberedResponse]:
        """The remembered responses of the last day, by idempotency key."""
        with self._database.reading() as connection:
            return find_responses(connection, collection, keys)


def find_responses(
    connection: Connection, collection: Collection, keys: Sequence[str]
) -> dict[str, RememberedResponse]:
    """The remembered responses of the last day, by idempotency key, in the caller's transaction."""
    if not keys:
        return {}
    table = remembered_responses
    wanted = select(table).where(
        (table.c.collection == collection.key)
        & table.c.idempotency_key.in_(keys)
        & (table.c.created_at > Now() - KEPT_SECONDS)
    )
    return {
        row.idempotency_key: RememberedResponse(row.idempotency_key, row.request, row.answer)
        for row in connection.execute(wanted)
    }


def remember_responses(
    connection: Connection, collection: Collection, responses: Sequence[RememberedResponse]
) -> None:
    """Keep `responses` for a day, and delete older ones, in the caller's transaction."""
    if not responses:
        return
    table = remembered_responses
    primary_key = tuple_(table.c.collection, table.c.idempotency_key)
    # Those that another writer deletes at this moment are left to it: waiting for it could be a deadlock.
    expired = (
        select(table.c.collection, table.c.idempotency_key)
        .where(table.c.created_at <= Now() - KEPT_SECONDS)
        .with_for_update(skip_locked=True)
    )
    connection.execute(delete(table).where(primary_key.in_(expired)))
    rows = [
        {
            "collection": collection.key,
            "idempotency_key": response.idempotency_key,
            "request": response.request_sha256,
            "answer": response.response,
        }
        for response in responses
    ]
    connection.execute(insert(table).values(created_at=Now()), rows)
