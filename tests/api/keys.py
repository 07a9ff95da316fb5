"""Keys for tests: in the environment, as they are written there since 0.1.0, and in the store."""

import httpx

from sameface.model.access.keys import draft_key, draw_secret, hash_secret
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.store import Store


def make_key(scopes: str) -> tuple[str, str]:
    """A new secret, and its entry for SAMEFACE_API_KEYS with `read`, `write` or `read+write`."""
    secret = draw_secret()
    return secret, f"{hash_secret(secret)}:{scopes}"


def add_key(store: Store, *scopes: str, name: str = "test", **options: object) -> tuple[str, ApiKey]:
    """A new key in the store, and its secret."""
    secret = draw_secret()
    return secret, store.keys.add(draft_key(secret, name, scopes, **options))


def bearer(secret: str) -> dict[str, str]:
    """The header that carries a key."""
    return {"Authorization": f"Bearer {secret}"}


def store_of(client: httpx.Client) -> Store:
    """The store of the server behind `client`, as another process would write into it."""
    return client.app.state.gallery.store
