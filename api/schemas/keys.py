"""The schemas of API keys."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from sameface.api.schemas.fields import Name, Request, Response, Time, read_json_text
from sameface.model.access.keys import (
    GRACE_SECONDS,
    LARGEST_LIMIT,
    LONGEST_GRACE_SECONDS,
    MOST_COLLECTIONS,
    SCOPES,
    draft_key,
)
from sameface.model.store.access.api_key import ApiKey, KeyLimits

Scope = Literal["read", "search", "write", "admin"]
Limit = Annotated[int, Field(ge=1, le=LARGEST_LIMIT)]
Place = Annotated[str, Field(max_length=129, pattern=r"^[A-Za-z0-9._~-]*\*?$")]


class Limits(Request):
    """How much a key may ask for; what is left out or null has no limit."""

    requests_per_minute: Limit | None = None
    photos_per_minute: Limit | None = None
    concurrent: Limit | None = Field(None, description="Requests at once.")
    faces: Limit | None = Field(None, description="Faces enrolled in the collections that it may touch.")


class KeyRequest(Request):
    """What a new key may do, and how long."""

    name: Name = Field(min_length=1, description="Whose it is.")
    scopes: Annotated[list[Scope], BeforeValidator(read_json_text)] = Field(
        min_length=1, description="What it may do."
    )
    collections: Annotated[list[Place] | None, BeforeValidator(read_json_text)] = Field(
        None,
        max_length=MOST_COLLECTIONS,
        description="The collections that it may touch: names, or prefixes that end in `*`; else all.",
    )
    limits: Annotated[Limits | None, BeforeValidator(read_json_text)] = Field(
        None, description="How much it may ask for."
    )
    expires_at: Time | None = Field(None, description="When it stops working; never, if left out.")

    def to_key(self, secret: str) -> ApiKey:
        """The key for `secret`, to be kept in the store."""
        limits = KeyLimits(**self.limits.model_dump()) if self.limits else KeyLimits()
        expires_at = self.expires_at.timestamp() if self.expires_at else None
        return draft_key(secret, self.name, self.scopes, self.collections, limits, expires_at)


class RotateRequest(Request):
    """How long the former secret goes on working."""

    grace_seconds: float = Field(
        GRACE_SECONDS, ge=0, le=LONGEST_GRACE_SECONDS, description="Seconds that the old secret works on."
    )


class KeyResponse(Response):
    """A key, without its secret, which is kept nowhere."""

    key_id: str
    name: str
    scopes: list[Scope]
    collections: list[str] | None = Field(description="Null: all.")
    limits: Limits
    service: str | None = Field(description="Of another server's family, such as `compreface/recognition`.")
    created_at: datetime | None = Field(description="Null: it is of the server's environment.")
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="To the hour.")
    revoked_at: datetime | None
    former_until: datetime | None = Field(description="How long the secret before the last rotation works.")

    @classmethod
    def from_key(cls, key: ApiKey, **others: str) -> Self:
        """The response for `key`; `others` are further fields."""
        moments = {
            name: None if (seconds := getattr(key, name)) is None else datetime.fromtimestamp(seconds, UTC)
            for name in ("created_at", "expires_at", "last_used_at", "revoked_at", "former_until")
        }
        fields = {name: getattr(key, name) for name in ("key_id", "name", "collections", "service")}
        scopes = [scope for scope in SCOPES if scope in key.scopes]
        return cls.model_validate(
            fields | moments | others | {"scopes": scopes, "limits": asdict(key.limits)}
        )


class KeyWithSecret(KeyResponse):
    """A key with its new secret, which is shown this once."""

    secret: str


class KeyList(Response):
    """Keys by id."""

    items: list[KeyResponse]
    next_cursor: str | None

    @classmethod
    def from_keys(cls, keys: list[ApiKey], limit: int) -> "KeyList":
        """A page of keys; a page of `limit` items has a cursor to the next."""
        cursor = keys[-1].key_id if len(keys) == limit else None
        return cls(items=[KeyResponse.from_key(key) for key in keys], next_cursor=cursor)
