"""API keys: the secret is shown once, the server keeps its SHA-256 and its scopes."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

ENTRY = re.compile(r"(?P<sha256>[0-9a-f]{64}):(?P<scopes>(read|write)(\+(read|write))?)")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The SHA-256 of a key's secret, and the scopes that it grants."""

    sha256: str
    scopes: frozenset[str]

    @property
    def key_id(self) -> str:
        """The start of the hash: enough to tell keys apart, and nothing to call with."""
        return self.sha256[:12]


def parse_key(entry: str) -> ApiKey:
    """Parse an entry of SAMEFACE_API_KEYS: `HASH:read`, `HASH:write` or `HASH:read+write`."""
    found = ENTRY.fullmatch(entry)
    if not found:
        raise ValueError("an API key is written as its sha256, a colon, and read, write or read+write")
    return ApiKey(found["sha256"], frozenset(found["scopes"].split("+")))


def hash_key(secret: str) -> str:
    """The SHA-256 of `secret`; it needs no salt and no slow hash, because a secret is 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_key(scopes: str) -> tuple[str, str]:
    """A new secret with these `scopes`, and its entry for SAMEFACE_API_KEYS."""
    secret = f"sf_{secrets.token_urlsafe(32)}"
    return secret, f"{hash_key(secret)}:{scopes}"


def find_key(keys: Iterable[ApiKey], secret: str) -> ApiKey | None:
    """The key of `secret`, or None; compares every key in constant time, which prevents timing attacks."""
    found = hash_key(secret)
    matching = [key for key in keys if hmac.compare_digest(key.sha256, found)]
    return matching[0] if matching else None
