"""API keys as a caller may manage them: only those whose scopes and collections the caller's key covers."""

from sameface.model.access.sealed_secrets import rotate_key
from sameface.model.errors import Forbidden, KeyNotFound
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.store import Store


class KeyDesk:
    """The keys that the holder of the key `manager` may manage: those that it covers.

    A manager without a key, on a server that has none yet, may manage all.
    """

    def __init__(self, store: Store, manager: ApiKey | None) -> None:
        self._store = store
        self._keys = store.keys
        self._manager = manager

    def add(self, draft: ApiKey) -> ApiKey:
        """Keep a new key; raises if it could do more than the manager's."""
        if not self._manages(draft):
            raise Forbidden("A key can only make keys within its own scopes and collections.")
        return self._keys.add(draft)

    def get(self, key_id: str) -> ApiKey:
        """The key with this id."""
        key = self._keys.get(key_id)
        if not self._manages(key):
            raise KeyNotFound(f"There is no key {key_id!r}.")
        return key

    def page(self, limit: int, after: str = "") -> list[ApiKey]:
        """Up to `limit` keys by id, from the first whose id is greater than `after`."""
        return [key for key in self._keys.page(after=after) if self._manages(key)][:limit]

    def rotate(self, key_id: str, grace_seconds: float) -> tuple[ApiKey, str]:
        """The key with a new secret, and that secret; the one before works for `grace_seconds` more."""
        return rotate_key(self._store, self.get(key_id).key_id, grace_seconds)

    def revoke(self, key_id: str) -> None:
        """End a key for good."""
        self._keys.revoke(self.get(key_id).key_id)

    def _manages(self, key: ApiKey) -> bool:
        return self._manager is None or self._manager.covers(key)
