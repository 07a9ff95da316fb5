"""What calls about the audit return."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sameface_client.values import Value


@dataclass(frozen=True, slots=True)
class Review(Value):
    """What somebody said about a decision."""

    entry_id: str
    time: datetime
    reviewer: str
    confirmed: bool
    caller: str


@dataclass(frozen=True, slots=True)
class AuditEntry(Value):
    """A change, a decision or a review, with the reviews of a decision, earliest first."""

    entry_id: str
    time: datetime  # when it was done or decided
    started_at: datetime | None  # when the work on a decision began
    action: str
    outcome: str
    caller: str
    request_id: str | None
    route: str | None
    collection: str | None
    revision: int | None  # of the collection: after a change, or as it was searched
    person_id: str | None
    model: str | None
    similarity: float | None
    threshold: float | None
    reviewed: str | None  # the entry that a review is about
    details: dict[str, Any]
    hash: str  # of this entry and of the one before it in its chain
    reviews: list[Review]
    review_status: str | None  # pending, confirmed or rejected; None if no review is needed
