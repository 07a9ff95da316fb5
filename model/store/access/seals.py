"""Seals in the store: each joins the heads of the audit's chains, signed; the audit is cut at a seal."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, func, insert, select, update

from sameface.model.store.access.audit import FIRST, StoredEntry, to_entry, write_compactly
from sameface.model.store.databases.database import Database
from sameface.model.store.databases.tables import audit, chains, seals
from sameface.model.store.records import write_time

ROWS_AT_ONCE = 2_000  # read or deleted together, while other writers wait
SEALS_AT_ONCE = 500

Heads: TypeAlias = dict[str, list[Any]]  # by chain: the number and the hash of its last entry
Sign: TypeAlias = Callable[[bytes], str]

# A chain that is being written at this moment is left to the next seal or cut: to wait for its writer, who
# may be waiting too, could be a deadlock.
LOCK_CHAINS = select(chains).with_for_update(skip_locked=True)


@dataclass(frozen=True, slots=True)
class Seal:
    """The heads of the chains that have grown since the previous seal, signed with the secret key."""

    number: int
    time: float
    previous: str  # the signature of the seal before it; of a cut, of the last seal that was cut
    heads: Heads
    is_cut: bool  # the entries up to these heads were cut, and those after them are kept
    signature: str = ""

    def describe(self) -> dict[str, Any]:
        """The seal as `sameface audit export` writes it, without its signature: what is signed."""
        return {
            "seal": self.number,
            "time": write_time(self.time),
            "previous": self.previous,
            "heads": self.heads,
            "is_cut": self.is_cut,
        }


class Seals:
    """The seals, and the entries that they cover."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, sign: Sign, now: float) -> Seal | None:
        """Seal all entries that are not sealed yet; returns the seal, None if there are no such entries."""
        unsealed = LOCK_CHAINS.where(chains.c.number > chains.c.sealed)
        with self._database.writing(alone=True) as connection:
            heads = {row.chain: [row.number, row.hash] for row in connection.execute(unsealed)}
            if not heads:
                return None
            last = connection.execute(select(seals).order_by(seals.c.number.desc()).limit(1)).one_or_none()
            number = last.number + 1 if last else 1
            before = (last.previous if last.is_cut else last.signature) if last else FIRST
            made = write_seal(connection, Seal(number, now, before, heads, False), sign)
            for chain, (sealed, _) in heads.items():
                connection.execute(update(chains).where(chains.c.chain == chain).values(sealed=sealed))
        return made

    def cut(self, before: float, sign: Sign) -> int:
        """Delete entries that were sealed before the time `before`, up to a seal; returns their number.

        One transaction deletes a few thousand at most: call it until it returns 0. The seals of the deleted
        entries are replaced by one, signed anew, with the heads after which the kept entries go on.
        """
        oldest = select(seals).order_by(seals.c.number).limit(SEALS_AT_ONCE)
        with self._database.writing(alone=True) as connection:
            found = [Seal(**row._mapping) for row in connection.execute(oldest)]
            start: Heads = {}
            gone, last = 0, None
            for seal in takewhile(lambda seal: seal.is_cut or seal.time < before, found):
                start |= seal.heads
                if seal.is_cut:
                    continue
                last = seal
                gone += sum(
                    delete_entries(connection, chain, upto) for chain, (upto, _) in seal.heads.items()
                )
                if gone >= ROWS_AT_ONCE:
                    break
            if last is None:
                return 0
            kept = drop_ended(connection, start)
            connection.execute(delete(seals).where(seals.c.number <= last.number))
            write_seal(connection, Seal(last.number, last.time, last.signature, kept, True), sign)
        self._database.forget_log_soon()
        return gone

    def each(self) -> Iterator[Seal]:
        """All seals in their order, a few in memory at a time."""
        after = -1
        while True:
            wanted = select(seals).where(seals.c.number > after).order_by(seals.c.number).limit(SEALS_AT_ONCE)
            with self._database.reading() as connection:
                found = [Seal(**row._mapping) for row in connection.execute(wanted)]
            if not found:
                return
            yield from found
            after = found[-1].number

    def entries(self, chain: str, after: int, upto: int) -> Iterator[StoredEntry]:
        """The entries of a chain after the number `after`, up to and with the number `upto`."""
        while True:
            here = (audit.c.chain == chain) & (audit.c.number > after) & (audit.c.number <= upto)
            wanted = select(audit).where(here).order_by(audit.c.number).limit(ROWS_AT_ONCE)
            with self._database.reading() as connection:
                found = [to_entry(row) for row in connection.execute(wanted)]
            yield from found
            if len(found) < ROWS_AT_ONCE:
                return
            after = found[-1].number

    def heads(self) -> Heads:
        """The heads of all chains, as their writers left them."""
        with self._database.reading() as connection:
            rows = connection.execute(select(chains).order_by(chains.c.chain))
            return {row.chain: [row.number, row.hash] for row in rows}

    def count_entries(self) -> int:
        """The number of all entries."""
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).select_from(audit)).scalar_one()


# Inside the caller's transaction.


def write_seal(connection: Connection, seal: Seal, sign: Sign) -> Seal:
    """Sign a seal and insert it; returns it with its signature."""
    columns = {name: getattr(seal, name) for name in ("number", "time", "previous", "heads", "is_cut")}
    columns["signature"] = sign(write_compactly(seal.describe()))
    connection.execute(insert(seals).values(columns))
    return Seal(**columns)


def delete_entries(connection: Connection, chain: str, upto: int) -> int:
    """Delete the entries of a chain up to and with the number `upto`; returns how many there were."""
    gone = connection.execute(delete(audit).where((audit.c.chain == chain) & (audit.c.number <= upto)))
    return gone.rowcount


def drop_ended(connection: Connection, start: Heads) -> Heads:
    """Delete the chains that have no entry after `start`; returns the heads of the others."""
    kept = dict(start)
    for row in connection.execute(LOCK_CHAINS).all():
        if start.get(row.chain, [-1])[0] == row.number:
            connection.execute(delete(chains).where(chains.c.chain == row.chain))
            del kept[row.chain]
    return kept
