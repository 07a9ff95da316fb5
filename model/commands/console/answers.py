"""Lists, keys and times as the HTTP API answers them."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from sameface.model.access.keys import SCOPES
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.records import write_time


def describe_list(items: Iterable[Any]) -> dict[str, Any]:
    """All items in one page, as GET answers a list."""
    return {"items": list(items), "next_cursor": None}


def describe_key(key: ApiKey) -> dict[str, Any]:
    """A key, as GET /v1/keys/{key_id} answers it: without the hashes of its secrets."""
    same = ("key_id", "name", "collections", "service")
    times = ("created_at", "expires_at", "last_used_at", "revoked_at", "former_until")
    return (
        {field: getattr(key, field) for field in same}
        | {"scopes": [scope for scope in SCOPES if scope in key.scopes], "limits": asdict(key.limits)}
        | {field: moment and write_time(moment) for field in times for moment in [getattr(key, field)]}
    )
