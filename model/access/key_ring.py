"""The API keys that a server accepts: those of its environment, and the store's, cached for half a second."""

import asyncio
import logging
import time
from collections.abc import Sequence

from sameface.model.access.sealed_secrets import open_secrets
from sameface.model.data_folder import GalleryPlace
from sameface.model.errors import SamefaceError
from sameface.model.parallel import Threads
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.access.keys import HOUR
from sameface.model.store.store import Store

log = logging.getLogger("sameface.access")

FRESH_SECONDS = 0.5  # that the store's keys are taken as they were read: half of what is promised
PATIENCE_SECONDS = 0.5  # that requests wait for a reading: one that takes longer, the store does not answer


class KeyRing:
    """All API keys in memory, by hash of the secret and by id; once there was a key, `guarded` stays true."""

    def __init__(self, environment: Sequence[ApiKey], place: GalleryPlace) -> None:
        self._environment = environment
        self._place = place
        self._store: Store | None = None
        self._revision = 0
        self._checked = -FRESH_SECONDS
        self._reading: asyncio.Task[None] | None = None
        self._began = 0.0  # when that did
        self._thread = Threads(1, "keys")
        self._used: set[str] = set()  # keys whose last use is not in the store yet
        self._by_hash = {key.sha256: key for key in environment}
        self._by_id = {key.key_id: key for key in environment}
        self._secrets: dict[str, tuple[str, ...]] = {}  # opened, by the id of a key that keeps its own

    def open(self) -> None:
        """Open the store, unless it is, and read its keys; it stays closed if that fails."""
        if self._store:
            return
        self._store = store = Store(self._place)
        try:
            self._read()
        except BaseException:
            self._store = None
            store.close()
            raise

    @property
    def store(self) -> Store:
        """The open store."""
        assert self._store
        return self._store

    @property
    def is_open(self) -> bool:
        """Whether the store's keys are known."""
        return self._store is not None

    @property
    def guarded(self) -> bool:
        """Whether callers need a key: there is one, or there was."""
        return bool(self._environment) or self._revision > 0

    async def refresh(self) -> None:
        """Read the store's keys again if their revision changed; checks it once per `FRESH_SECONDS`.

        While the store does not answer, they are taken as they were last read, and the reading goes on.
        """
        while self.is_open and self._is_stale():
            if self._reading is None or self._reading.done():
                self._reading, self._began = asyncio.create_task(self._try_to_read()), time.monotonic()
            patience = self._began + PATIENCE_SECONDS - time.monotonic()
            done, _ = await asyncio.wait([self._reading], timeout=max(0.0, patience))
            if not done:
                return
            self._reading.result()

    def find(self, sha256: str) -> ApiKey | None:
        """The key whose secret has this hash, now or before its last rotation.

        A lookup is safe although its time varies: it depends on the hash, which tells nothing of the secret.
        """
        key = self._by_hash.get(sha256)
        if key:
            self.note_use(key)
        return key

    def find_signer(self, key_id: str) -> tuple[ApiKey | None, tuple[str, ...]]:
        """The key with this id, and the secrets that it keeps to check signatures; most keys keep none."""
        key = self._by_id.get(key_id)
        if key is None or not key.sealed:
            return key, ()
        if key_id not in self._secrets:
            self._secrets[key_id] = open_secrets(self.store, key)
        return key, self._secrets[key_id]

    def note_use(self, key: ApiKey) -> None:
        """Remember that `key` was used, to be written into the store within the hour."""
        if (key.last_used_at or 0) + HOUR <= time.time():
            self._used.add(key.key_id)

    def expect_change(self) -> None:
        """Let the next `refresh` ask the store, because this process has just changed a key."""
        self._checked = -FRESH_SECONDS

    async def save_uses(self) -> None:
        """Write into the store when keys were last used, to the hour."""
        stored = {key.key_id for key in self._by_hash.values() if key.number is not None}
        used, self._used = self._used & stored, set()
        if used:
            try:
                await self._thread.run(self._save, used)
            except SamefaceError as error:
                log.warning("the last use of %d keys is not written: %s", len(used), error.detail)

    def close(self) -> None:
        """Close the store."""
        self._thread.close()
        if self._store:
            self._store.close()

    def _is_stale(self) -> bool:
        return time.monotonic() - self._checked >= FRESH_SECONDS

    async def _try_to_read(self) -> None:
        try:
            await self._thread.run(self._read)
        except SamefaceError as error:  # nobody can revoke a key in a store that cannot be read
            self._checked = time.monotonic()
            log.warning("keys are taken as they were last read: %s", error.detail)

    def _read(self) -> None:
        """Read the store's keys if their revision has changed since the last read."""
        before, asked = self._checked, time.monotonic()
        revision = self.store.keys.revision
        if revision != self._revision:
            self._index()
            self._revision = revision
        if self._checked == before:  # else keys were changed here meanwhile
            self._checked = asked

    def _index(self) -> None:
        """Index the keys by the hashes of their secrets, present and former."""
        keys = (*self._environment, *self.store.keys.page())
        former = {key.former_sha256: key for key in keys if key.former_sha256}
        self._by_hash = former | {key.sha256: key for key in keys}
        self._by_id = {key.key_id: key for key in keys}
        self._secrets = {}

    def _save(self, used: set[str]) -> None:
        self.store.keys.note_used(used, time.time())
        self._index()
