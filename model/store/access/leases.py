"""Leases in the store: parts of a minute's limit that machines take, so that all together keep the limit.

A lease may be used for `LEASE_SECONDS`. What was leased in any `SPAN_SECONDS` is never more than the limit,
so neither is what was used in any minute, whatever the machines' clocks say.
"""

import math
from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select, update

from sameface.model.store.databases.database import Database, Now
from sameface.model.store.databases.tables import leases

LEASE_SECONDS = 5
SPAN_SECONDS = 61 + LEASE_SECONDS
PARTS = 20  # of a limit: a lease is one, so that few requests ask the store


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of `amount` requests or photos; if that is 0, ask again after `wait_seconds`."""

    key: int = 0
    amount: int = 0
    wait_seconds: int = 0


class Leases:
    """The leases of all machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, number: int, what: str, limit: int, needed: int) -> Lease:
        """Lease `needed`, or up to `limit` / `PARTS` if that is more; the amount is 0 if too few are left."""
        mine = (leases.c.number == number) & (leases.c.what == what)
        first = func.coalesce(func.min(leases.c.taken_at), Now())
        so_far = select(func.coalesce(func.sum(leases.c.amount), 0), first, Now())
        with self._database.writing(alone=True) as connection:
            connection.execute(delete(leases).where(leases.c.taken_at <= Now() - SPAN_SECONDS))
            leased, oldest, now = connection.execute(so_far.where(mine)).one()
            amount = min(max(needed, math.ceil(limit / PARTS)), limit - leased)
            if amount < needed:
                return Lease(wait_seconds=max(1, math.ceil(oldest + SPAN_SECONDS - now)))
            row = {"number": number, "what": what, "amount": amount, "taken_at": now}
            key = connection.execute(insert(leases).values(row).returning(leases.c.key)).scalar_one()
        return Lease(key, amount)

    def give_back(self, key: int, unused: int) -> None:
        """Give back what was not used of a lease."""
        with self._database.writing() as connection:
            mine = leases.c.key == key
            connection.execute(update(leases).where(mine).values(amount=leases.c.amount - unused))
