"""Proves that nothing in the audit was altered, removed, moved or cut, by its hashes and its seals."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sameface.model.access.audit.seals import PURPOSE
from sameface.model.access.secret_key import SecretKey, secret_key_of
from sameface.model.store.access.audit import FIRST, hash_entry, write_compactly
from sameface.model.store.access.seals import Heads
from sameface.model.store.store import Store

MOST_FAULTS = 20  # that are listed
LAST = 2**62  # greater than the number of any entry
NOTHING: list[Any] = [0, FIRST]  # the head of a chain before its first entry

Line: TypeAlias = dict[str, Any]  # an entry or a seal, as an export has it


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check: what was read, and the faults that were found."""

    entries: int
    seals: int
    last_seal: int | None
    unsealed: int  # entries after the last seal, which their hashes alone protect
    faults: list[str]


@dataclass(slots=True)
class Checker:
    """Reads entries and seals in their order: the entries that a seal covers come before it."""

    find_key: Callable[[], SecretKey]  # called at the first seal
    heads: Heads = field(default_factory=dict)
    entries: int = 0
    seals: int = 0
    last_seal: int | None = None
    unsealed: int = 0
    faults: list[str] = field(default_factory=list)
    _key: SecretKey | None = None
    _previous: str = FIRST  # what the next seal says about the one before it

    def read(self, lines: Iterable[Line]) -> None:
        """Check entries and seals."""
        for line in lines:
            if "seal" in line:
                self.read_seal(line)
            else:
                self.read_entry(line)

    def read_entry(self, line: Line) -> None:
        """Check that an entry is the next of its chain, and is as it was written."""
        self.entries += 1
        self.unsealed += 1
        chain, _, number = line["entry_id"].rpartition(".")
        last, digest = self.heads.get(chain, NOTHING)
        described = {name: value for name, value in line.items() if name != "hash"}
        if int(number) != last + 1:
            self.fault(f"{line['entry_id']} does not follow entry {last} of its chain")
        elif line["hash"] != hash_entry(digest, described):
            self.fault(f"{line['entry_id']} was altered, or the entry before it was")
        self.heads[chain] = [int(number), line["hash"]]

    def read_seal(self, line: Line) -> None:
        """Check that a seal is the next, that it is signed, and that its entries have been read."""
        self.seals += 1
        self.unsealed = 0
        number = line["seal"]
        signed = {name: value for name, value in line.items() if name != "signature"}
        self._key = self._key or self.find_key()
        if not self._key.has_signed(PURPOSE, write_compactly(signed), line["signature"]):
            self.fault(f"seal {number} is not signed with this secret key: it was altered, or the key was")
        if line["is_cut"]:
            self.begin_after_cut(line)
        else:
            self.join(line)
        self.last_seal = number
        self._previous = line["previous"] if line["is_cut"] else line["signature"]

    def begin_after_cut(self, line: Line) -> None:
        """Go on from the heads of a cut, which is the first seal or none."""
        if self.last_seal is not None or self.entries:
            self.fault(f"seal {line['seal']} is a cut, and there is something before it")
        self.heads |= line["heads"]

    def join(self, line: Line) -> None:
        """Check a seal against the one before it and the entries that it covers."""
        number = line["seal"]
        if number != (self.last_seal or 0) + 1 or line["previous"] != self._previous:
            self.fault(f"seal {number} does not follow seal {self.last_seal or 'none'}: seals were removed")
        for chain, head in line["heads"].items():
            found = self.heads.get(chain, NOTHING)
            if found != list(head):
                last = f"{chain}.{head[0]}"
                self.fault(f"seal {number} ends with entry {last}, which is gone or was altered")
                self.heads[chain] = list(head)

    def fault(self, sentence: str) -> None:
        """Note a fault, unless there are many."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)

    def verdict(self) -> Verdict:
        """What was found."""
        return Verdict(self.entries, self.seals, self.last_seal, self.unsealed, self.faults)


def check_audit(store: Store) -> Verdict:
    """Check the audit of a store, in one snapshot, so that servers may write meanwhile."""
    with store.frozen():
        checker = Checker(lambda: secret_key_of(store, make=False))
        checker.read(read_lines(store))
        heads = store.seals.heads()
        for chain, head in heads.items():
            after, _ = checker.heads.get(chain, NOTHING)
            checker.read(entry.describe() for entry in store.seals.entries(chain, after, LAST))
            if checker.heads.get(chain, NOTHING) != head:
                checker.fault(f"the last entries of the chain {chain} are gone: it ended with {head[0]}")
        lost = store.seals.count_entries() - checker.entries
        if lost > 0:
            checker.fault(f"{lost} entries belong to no chain, or were written before the cut")
    return checker.verdict()


def read_lines(store: Store) -> Iterator[Line]:
    """The seals of a store, each after the entries that it covers."""
    heads: Heads = {}
    for seal in store.seals.each():
        if not seal.is_cut:
            for chain, (number, _) in seal.heads.items():
                after, _ = heads.get(chain, NOTHING)
                yield from (entry.describe() for entry in store.seals.entries(chain, after, number))
        yield seal.describe() | {"signature": seal.signature}
        heads |= seal.heads
