"""The schemas of the audit."""

from datetime import datetime
from typing import Any

from pydantic import Field

from sameface.api.schemas.fields import Id, Request, Response, Time
from sameface.model.access.audit.reviews import AuditedEntry, ReviewStatus
from sameface.model.store.access.audit import StoredEntry, Wanted


class AuditQuery(Request):
    """Which entries to list."""

    since: Time | None = Field(None, description="From this time on.")
    until: Time | None = Field(None, description="Before this time.")
    caller: str | None = Field(None, max_length=128, description="A key's id, `anonymous` or `local`.")
    collection: str | None = Field(None, max_length=128, description="A collection's name.")
    person_id: str | None = Field(None, max_length=128, description="Entries about this person.")
    request_id: str | None = Field(None, max_length=128, description="The X-Request-ID of a response.")
    limit: int = Field(100, ge=1, le=1000)
    cursor: str = Field("", pattern=r"^[0-9]{0,18}$")

    def to_wanted(self) -> Wanted:
        """The entries that are asked for."""
        return Wanted(
            since=self.since.timestamp() if self.since else None,
            until=self.until.timestamp() if self.until else None,
            caller=self.caller,
            collection=self.collection,
            person_id=self.person_id,
            request_id=self.request_id,
        )

    @property
    def before(self) -> int | None:
        """The key of the last entry of the page before, None for the first page."""
        return int(self.cursor) if self.cursor else None


class ReviewRequest(Request):
    """What somebody says about a decision."""

    reviewer: Id = Field(description="The id of the person who looked at it, as your records have it.")
    confirmed: bool = Field(description="Whether the person agrees with the decision.")


class Review(Response):
    """What somebody said about a decision."""

    entry_id: str
    time: datetime
    reviewer: str
    confirmed: bool
    caller: str

    @classmethod
    def from_entry(cls, stored: StoredEntry) -> "Review":
        """The review that an entry of the audit is."""
        return cls(
            entry_id=stored.entry_id,
            time=stored.describe()["time"],
            reviewer=stored.entry.details["reviewer"],
            confirmed=stored.entry.outcome == "confirmed",
            caller=stored.entry.actor.caller,
        )


class AuditEntry(Response):
    """A change, a decision or a review."""

    entry_id: str
    time: datetime = Field(description="When it was done or decided.")
    started_at: datetime | None = Field(description="When the work on a decision began.")
    action: str
    outcome: str
    caller: str
    request_id: str | None
    route: str | None
    collection: str | None
    revision: int | None = Field(description="Of the collection: after a change, or as it was searched.")
    person_id: str | None
    model: str | None
    similarity: float | None
    threshold: float | None
    reviewed: str | None = Field(description="The entry that a review is about.")
    details: dict[str, Any]
    hash: str = Field(description="The SHA-256 of this entry and of the one before it in its chain.")
    reviews: list[Review]
    review_status: ReviewStatus | None

    @classmethod
    def from_entry(cls, audited: AuditedEntry) -> "AuditEntry":
        """The response for an entry with its reviews."""
        reviews = [Review.from_entry(each) for each in audited.reviews]
        return cls(**audited.stored.describe(), reviews=reviews, review_status=audited.status)


class AuditList(Response):
    """Entries of the audit, newest first."""

    items: list[AuditEntry]
    next_cursor: str | None

    @classmethod
    def from_entries(cls, entries: list[AuditedEntry], limit: int) -> "AuditList":
        """A page of entries; a page of `limit` items has a cursor to the next."""
        cursor = str(entries[-1].stored.key) if len(entries) == limit else None
        return cls(items=[AuditEntry.from_entry(each) for each in entries], next_cursor=cursor)
