"""The calls about API keys: make, list, look up, rotate, revoke."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from sameface_client.answers import Key, KeyLimits, KeyWithSecret
from sameface_client.operations.fields import PAGE, check_id, check_text, drop_missing, to_texts
from sameface_client.pages import KeyPage
from sameface_client.requests import Request, Steps
from sameface_client.values import read

Scope: TypeAlias = Literal["read", "search", "write", "admin"]


class KeyOperations:
    """The keys that the caller's own may manage."""

    def create(
        self,
        name: str,
        scopes: Sequence[Scope],
        *,
        collections: Sequence[str] | None = None,
        limits: KeyLimits | None = None,
        expires_at: datetime | None = None,
    ) -> Steps[KeyWithSecret]:
        """Make a key within the scopes and collections of your own; its secret is shown this once."""
        sent = drop_missing(
            {
                "name": check_text(name),
                "scopes": [*scopes],
                "collections": None if collections is None else [*collections],
                "limits": limits.to_dict() if limits else None,
                "expires_at": expires_at.astimezone().isoformat() if expires_at else None,
            }
        )
        return read(KeyWithSecret, (yield Request("POST", "/v1/keys", json=sent, repeatable=False)))

    def list(self, cursor: str) -> Steps[KeyPage]:
        """All keys by id, a page at a time."""
        return read(KeyPage, (yield Request("GET", "/v1/keys", query=to_texts(limit=PAGE, cursor=cursor))))

    def own(self) -> Steps[Key]:
        """What the caller may do; without keys, anybody may do everything."""
        return read(Key, (yield Request("GET", "/v1/keys/self")))

    def get(self, key_id: str) -> Steps[Key]:
        """The key of this id."""
        return read(Key, (yield Request("GET", f"/v1/keys/{check_id(key_id)}")))

    def rotate(self, key_id: str, *, grace_seconds: float = 3600.0) -> Steps[KeyWithSecret]:
        """Give a key a new secret, which is shown this once; the old one works for `grace_seconds` more."""
        path, sent = f"/v1/keys/{check_id(key_id)}/rotate", {"grace_seconds": grace_seconds}
        return read(KeyWithSecret, (yield Request("POST", path, json=sent, repeatable=False)))

    def revoke(self, key_id: str) -> Steps[None]:
        """End a key for good: every worker of the server refuses it within a second."""
        yield Request("DELETE", f"/v1/keys/{check_id(key_id)}", repeatable=False)
