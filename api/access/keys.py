"""API keys: shown once, kept as hashes, each with its scopes."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

ENTRY = re.compile(r"(?P<sha256>[0-9a-f]{64}):(?P<scopes>(read|write)(\+(read|write))?)")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's hash and what it may do."""

    sha256: str
    scopes: frozenset[str]


def parse_key(entry: str) -> ApiKey:
    """An entry `HASH:SCOPE` or `HASH:read+write`."""
    found = ENTRY.fullmatch(entry)
    if not found:
        raise ValueError("an API key is written as its sha256, a colon, and read, write or read+write")
    return ApiKey(found["sha256"], frozenset(found["scopes"].split("+")))


def hash_key(secret: str) -> str:
    """The secret is 256 random bits, so a plain hash cannot be searched for."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_key(scopes: str) -> tuple[str, str]:
    """A new secret, and the entry to put into SAMEFACE_API_KEYS."""
    secret = f"sf_{secrets.token_urlsafe(32)}"
    return secret, f"{hash_key(secret)}:{scopes}"


def find_key(keys: Iterable[ApiKey], secret: str) -> ApiKey | None:
    """The key with this secret; every one is compared, so that time tells nothing."""
    found = hash_key(secret)
    matching = [key for key in keys if hmac.compare_digest(key.sha256, found)]
    return matching[0] if matching else None
