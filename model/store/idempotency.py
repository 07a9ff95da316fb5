"""Idempotency keys in the store: the first response to a request, kept for a day for its retries."""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, tuple_

from sameface.model.store.databases.database import Database, Now
from sameface.model.store.databases.one_of import OneOf
from sameface.model.store.databases.tables import remembered_responses
from sameface.model.store.records import Collection, RememberedResponse

KEPT_SECONDS = 24 * 3600
EXPIRING_SECONDS = 60  # between two looks of a connection for older ones

# Built once: every enrolment with a key runs it.
RESPONSES_TO = select(remembered_responses).where(
    (remembered_responses.c.collection == bindparam("of"))
    & OneOf(remembered_responses.c.idempotency_key, "keys")
    & (remembered_responses.c.created_at > Now() - KEPT_SECONDS)
)


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
    wanted = {"of": collection.key, "keys": keys}
    return {
        row.idempotency_key: RememberedResponse(row.idempotency_key, row.request, row.answer)
        for row in connection.execute(RESPONSES_TO, wanted)
    }


def describe_responses(
    collection: Collection, responses: Sequence[RememberedResponse], now: float
) -> list[dict[str, Any]]:
    """The rows of `responses`, which are kept for a day from `now` on, by the database's clock."""
    return [
        {
            "collection": collection.key,
            "idempotency_key": response.idempotency_key,
            "request": response.request_sha256,
            "answer": response.response,
            "created_at": now,
        }
        for response in responses
    ]


def expire_responses(connection: Connection) -> None:
    """Delete responses that are older than a day, in the caller's transaction, once a minute."""
    now = time.monotonic()
    if now < connection.info.get("expires", 0):
        return
    connection.info["expires"] = now + EXPIRING_SECONDS
    table = remembered_responses
    primary_key = tuple_(table.c.collection, table.c.idempotency_key)
    # Those that another writer deletes at this moment are left to it: waiting for it could be a deadlock.
    expired = (
        select(table.c.collection, table.c.idempotency_key)
        .where(table.c.created_at <= Now() - KEPT_SECONDS)
        .with_for_update(skip_locked=True)
    )
    connection.execute(delete(table).where(primary_key.in_(expired)))
