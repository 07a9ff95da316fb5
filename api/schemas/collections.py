"""The schemas of collections."""

from datetime import UTC, datetime

from pydantic import Field

from sameface.api.schemas.fields import CalibrationName, Request, Response
from sameface.model.store.records import MOST_REVIEWERS, Collection


class CollectionRequest(Request):
    """What a collection is to be."""

    store_crops: bool = Field(False, description="Keep the aligned crop of every face.")
    calibration: CalibrationName | None = Field(
        None, description="The calibration to decide by, of those that /v1/calibrations lists."
    )
    reviewers: int = Field(
        0, ge=0, le=MOST_REVIEWERS, description="People who must confirm a match before it counts as such."
    )


class CollectionResponse(Response):
    """A collection as it is now."""

    name: str
    people: int
    faces: int
    model: str
    index: str = Field(description="How it is searched.")
    revision: int = Field(description="Counts every change.")
    store_crops: bool
    calibration: str | None
    reviewers: int
    created_at: datetime

    @classmethod
    def from_collection(cls, collection: Collection, index: str) -> "CollectionResponse":
        """The response for `collection`, which is searched by this kind of `index`."""
        return cls(
            name=collection.name,
            people=collection.people,
            faces=collection.faces,
            model=collection.bundle,
            index=index,
            revision=collection.revision,
            store_crops=collection.store_crops,
            calibration=collection.calibration,
            reviewers=collection.reviewers,
            created_at=datetime.fromtimestamp(collection.created_at, UTC),
        )


class CollectionList(Response):
    """Collections by name."""

    items: list[CollectionResponse]
    next_cursor: str | None

    @classmethod
    def from_collections(cls, items: list[CollectionResponse], limit: int) -> "CollectionList":
        """A page of collections; a page of `limit` items has a cursor to the next."""
        return cls(items=items, next_cursor=items[-1].name if len(items) == limit else None)
