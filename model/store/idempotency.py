"""Idempotency keys in the store: the first response to a request, kept for a day for its retries."""

import time
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from sameface.model.store.database import Database
from sameface.model.store.records import Collection, RememberedResponse
from sameface.model.store.tables import remembered_responses

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
        & (table.c.created_at > time.time() - KEPT_SECONDS)
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
    table, now = remembered_responses, time.time()
    connection.execute(delete(table).where(table.c.created_at <= now - KEPT_SECONDS))
    rows = [
        {
            "collection": collection.key,
            "idempotency_key": response.idempotency_key,
            "request": response.request_sha256,
            "answer": response.response,
            "created_at": now,
        }
        for response in responses
    ]
    connection.execute(insert(table), rows)
