"""Records of the store as the HTTP API answers them: its names, its times, and no keys of tables."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sameface.model.access.keys import SCOPES
from sameface.model.gallery.index.faiss_search import choose_kind
from sameface.model.store.api_key import ApiKey
from sameface.model.store.records import Collection, Person


def describe_list(items: Iterable[Any]) -> dict[str, Any]:
    """All items in one page, as GET answers a list."""
    return {"items": list(items), "next_cursor": None}


def describe_collection(collection: Collection) -> dict[str, Any]:
    """A collection, as GET /v1/collections/{collection} answers it."""
    same = ("name", "people", "faces", "revision", "store_crops", "calibration")
    return {field: getattr(collection, field) for field in same} | {
        "model": collection.bundle,
        "index": choose_kind(collection.faces, "cpu"),
        "created_at": write_time(collection.created_at),
    }


def describe_person(person: Person) -> dict[str, Any]:
    """A person, as GET /v1/collections/{collection}/people/{person_id} answers it."""
    faces = [
        {"face_id": face.face_id, "quality": face.quality, "created_at": write_time(face.created_at)}
        for face in person.faces
    ]
    return {
        "person_id": person.person_id,
        "name": person.name,
        "metadata": person.metadata,
        "faces": faces,
        "created_at": write_time(person.created_at),
    }


def describe_key(key: ApiKey) -> dict[str, Any]:
    """A key, as GET /v1/keys/{key_id} answers it: without the hashes of its secrets."""
    same = ("key_id", "name", "collections")
    times = ("created_at", "expires_at", "last_used_at", "revoked_at", "former_until")
    return (
        {field: getattr(key, field) for field in same}
        | {"scopes": [scope for scope in SCOPES if scope in key.scopes], "limits": asdict(key.limits)}
        | {field: moment and write_time(moment) for field in times for moment in [getattr(key, field)]}
    )


def write_time(seconds: float) -> str:
    """A Unix time in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
