"""Reviews of decisions: who confirmed a match, which the EU's AI Act asks for in Art. 12(3) and 14(5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sameface.model.errors import AlreadyExists, InvalidArgument
from sameface.model.store.access.audit import (
    DECISIONS,
    Entry,
    StoredEntry,
    Wanted,
    find_entry,
    find_reviews,
    record_entry,
)
from sameface.model.store.records import refuse_invalid_id
from sameface.model.store.store import Store

ReviewStatus: TypeAlias = Literal["pending", "confirmed", "rejected"]


@dataclass(frozen=True, slots=True)
class AuditedEntry:
    """An entry of the audit with its reviews, earliest first."""

    stored: StoredEntry
    reviews: list[StoredEntry]

    @property
    def needed(self) -> int:
        """How many people must confirm the match, as its collection asked when it was found."""
        return int(self.stored.entry.details.get("reviewers", 0))

    @property
    def status(self) -> ReviewStatus | None:
        """`rejected` by one, `confirmed` by as many as are needed, else `pending`; None if none is needed."""
        outcomes = [review.entry.outcome for review in self.reviews]
        if "rejected" in outcomes:
            return "rejected"
        if outcomes and len(outcomes) >= self.needed:
            return "confirmed"
        return "pending" if outcomes or self.needed else None


def read_audit(store: Store, wanted: Wanted, limit: int, before: int | None = None) -> list[AuditedEntry]:
    """Up to `limit` entries with their reviews, newest first, from the first key smaller than `before`."""
    return add_reviews(store, store.audit.page(wanted, limit, before))


def add_reviews(store: Store, entries: Sequence[StoredEntry]) -> list[AuditedEntry]:
    """The entries with their reviews."""
    decisions = [each.entry_id for each in entries if each.entry.action in DECISIONS]
    reviews = store.audit.reviews_of(decisions) if decisions else {}
    return [AuditedEntry(each, reviews.get(each.entry_id, [])) for each in entries]


def review_entry(store: Store, entry_id: str, reviewer: str, *, confirmed: bool) -> AuditedEntry:
    """Write down that `reviewer` confirmed or rejected a decision; nobody reviews the same one twice."""
    refuse_invalid_id(reviewer, "reviewer")
    with store.writing(alone=True) as connection:
        decision = find_entry(connection, entry_id)
        entry = decision.entry
        if entry.action not in DECISIONS or entry.person_id is None:
            raise InvalidArgument(f"{entry_id!r} is no decision about a person: there is nothing to review.")
        earlier = find_reviews(connection, [entry_id])[entry_id]
        if any(review.entry.details["reviewer"] == reviewer for review in earlier):
            raise AlreadyExists(f"{reviewer!r} has reviewed this decision already: another person must.")
        made = Entry(
            action="review",
            outcome="confirmed" if confirmed else "rejected",
            collection=entry.collection,
            revision=entry.revision,
            person_id=entry.person_id,
            model=entry.model,
            reviewed=entry_id,
            details={"reviewer": reviewer},
        )
        record_entry(connection, made)
        return AuditedEntry(decision, find_reviews(connection, [entry_id])[entry_id])
