"""API keys: their scopes, their secrets, and their entries in the environment."""

import hashlib
import re
import secrets
import time
import uuid
from collections.abc import Collection, Sequence

from sameface.model.errors import InvalidArgument
from sameface.model.store.access.api_key import ANYTHING, UNLIMITED, ApiKey, KeyLimits
from sameface.model.store.records import LAST_TIME, MAX_NAME, draw_id, is_id, is_text

SCOPES = ("read", "search", "write", "admin")
# What an entry without a name grants: it was written when `read` and `write` were all there was.
OLD_SCOPES = {"read": ("read", "search"), "write": ("write", "admin")}
ENTRY = re.compile(
    r"((?P<name>[A-Za-z0-9._~-]{1,128}):)?(?P<sha256>[0-9a-f]{64}):(?P<scopes>[a-z]+(\+[a-z]+)*)"
)

# What a key of CompreFace is for, by the name that users type.
COMPREFACE_SERVICES = {name: f"compreface/{name}" for name in ("recognition", "detection", "verification")}
REKOGNITION = "rekognition"  # the service of a key with which clients of Rekognition sign
KNOWN_BELOW = 2**32  # CompreFace's demo has keys of zeros and one digit
MOST_COLLECTIONS = 1000  # of a key
LARGEST_LIMIT = 1_000_000_000
GRACE_SECONDS = 3600.0  # that a rotated secret goes on working, unless said otherwise
LONGEST_GRACE_SECONDS = 30 * 24 * 3600.0


# What callers of a server without keys may do, as a key.
ANYBODY = ApiKey(key_id="anonymous", name="anonymous", sha256="", scopes=frozenset(SCOPES))


def draw_secret(service: str | None = None) -> str:
    """A new secret: 256 random bits; for Rekognition 240 in 40 characters, for CompreFace a UUID with 122."""
    if service == REKOGNITION:
        return secrets.token_urlsafe(30)
    return str(uuid.uuid4()) if service else f"sf_{secrets.token_urlsafe(32)}"


def read_uuid(text: str) -> str:
    """The UUID in `text` in its usual spelling; raises if it is none, or a key of CompreFace's demo."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        raise InvalidArgument(f"{text!r} is no UUID, which the keys of CompreFace are.") from None
    if found.int < KNOWN_BELOW:
        raise InvalidArgument("This is a key of CompreFace's demo, which everybody knows: choose another.")
    return str(found)


def hash_secret(secret: str) -> str:
    """The SHA-256 of `secret`; it needs no salt and no slow hash: nobody can guess a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def draft_key(
    secret: str,
    name: str,
    scopes: Collection[str],
    collections: Sequence[str] | None = None,
    limits: KeyLimits = UNLIMITED,
    expires_at: float | None = None,
    service: str | None = None,
) -> ApiKey:
    """A new key for `secret`, not stored yet; raises InvalidArgument if one of its settings is invalid."""
    if not name or not is_text(name, MAX_NAME):
        raise InvalidArgument(f"A key needs a name of at most {MAX_NAME} characters.")
    refuse_unknown_scopes(scopes)
    refuse_unlikely_places(collections)
    refuse_senseless_limits(limits)
    now = time.time()
    if expires_at is not None and not now < expires_at < LAST_TIME:
        raise InvalidArgument("A key must expire in the future, if it does.")
    return ApiKey(
        key_id=draw_id(),
        name=name,
        sha256=hash_secret(secret),
        scopes=frozenset(scopes),
        collections=None if collections is None else tuple(dict.fromkeys(collections)),
        limits=limits,
        service=service,
        created_at=now,
        expires_at=expires_at,
    )


def refuse_unknown_scopes(scopes: Collection[str]) -> None:
    """Raise if there is no scope, or one that does not exist."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        said = f"There is no scope {unknown[0]!r}" if unknown else "A key needs a scope"
        raise InvalidArgument(f"{said}: choose from {', '.join(SCOPES)}.")


def refuse_unlikely_places(collections: Sequence[str] | None) -> None:
    """Raise if one of the `collections` is neither the name of one nor a prefix of names."""
    if collections is None:
        return
    if not 0 < len(collections) <= MOST_COLLECTIONS:
        raise InvalidArgument(f"Name 1 to {MOST_COLLECTIONS} collections, or leave them out for all.")
    for place in collections:
        name = place.removesuffix(ANYTHING)
        if not (is_id(name) or place == ANYTHING):
            raise InvalidArgument(
                f"{place!r} is neither the name of a collection nor a prefix of names that ends in `*`."
            )


def refuse_senseless_limits(limits: KeyLimits) -> None:
    """Raise if a limit is below 1, which would be a key to revoke."""
    for name in KeyLimits.__dataclass_fields__:
        limit = getattr(limits, name)
        if limit is not None and not 1 <= limit <= LARGEST_LIMIT:
            raise InvalidArgument(
                f"The limit {name} must be 1 to {LARGEST_LIMIT}: a key that may do nothing is one to revoke."
            )


def refuse_long_grace(seconds: float) -> None:
    """Raise if a rotated secret would go on working for longer than is sensible."""
    if not 0 <= seconds <= LONGEST_GRACE_SECONDS:
        raise InvalidArgument(f"A secret may work for 0 to {LONGEST_GRACE_SECONDS:g} seconds more.")


def write_entry(name: str, secret: str, scopes: Collection[str]) -> str:
    """The entry of a key for SAMEFACE_API_KEYS."""
    refuse_unknown_scopes(scopes)
    entry = f"{name}:{hash_secret(secret)}:{'+'.join(scope for scope in SCOPES if scope in scopes)}"
    if not ENTRY.fullmatch(entry):
        raise InvalidArgument("In the environment, a key's name has letters, digits and . _ ~ - alone.")
    return entry


def parse_entry(entry: str) -> ApiKey:
    """Parse an entry of SAMEFACE_API_KEYS: `NAME:SHA256:SCOPES`, or `SHA256:SCOPES` as it used to be."""
    found = ENTRY.fullmatch(entry)
    named = found["scopes"].split("+") if found else []
    known: Collection[str] = SCOPES if found and found["name"] else OLD_SCOPES
    if not found or any(scope not in known for scope in named):
        raise ValueError(
            "an API key is written as name:sha256:scopes, its scopes joined by +, as `sameface keys create "
            "--environment` prints it, or as sha256 with :read, :write or :read+write"
        )
    scopes = named if found["name"] else [scope for old in named for scope in OLD_SCOPES[old]]
    key_id = f"environment-{found['sha256'][:8]}"
    return ApiKey(
        key_id=key_id, name=found["name"] or key_id, sha256=found["sha256"], scopes=frozenset(scopes)
    )


def find_fault(key: ApiKey, sha256: str, now: float) -> str | None:
    """Why `key` is not valid with the secret of this hash: revoked, expired or rotated; None if it is."""
    if key.revoked_at is not None:
        return "This key was revoked."
    if key.expires_at is not None and key.expires_at <= now:
        return "This key has expired."
    if sha256 != key.sha256 and (key.former_until or 0) <= now:
        return "This key has another secret now: it was rotated."
    return None
