"""Signs the audit: a seal from time to time, and the cut that retention leaves."""

import time
from pathlib import Path

from sameface.model.access.secret_key import SecretKey, load_secret_key
from sameface.model.data_folder import folder_of
from sameface.model.store.access.seals import Seal
from sameface.model.store.store import Store

PURPOSE = "audit"
DAY = 86_400.0


def sign_with(key: SecretKey, content: bytes) -> str:
    """The signature of a seal's content."""
    return key.sign(PURPOSE, content)


def key_of(store: Store, *, make: bool = True) -> SecretKey:
    """The secret key that belongs to a store: of the environment, or of its data folder.

    There it is made if it is missing, but not for a gallery of several machines: each would make another.
    """
    return load_secret_key(folder_of(store.place), make=make and isinstance(store.place, Path))


def seal_audit(store: Store) -> Seal | None:
    """Seal what is not sealed yet; returns the seal, None if there is nothing to seal."""
    key = key_of(store)
    return store.seals.add(lambda content: sign_with(key, content), time.time())


def cut_audit(store: Store, days: float) -> int:
    """Delete the entries that were sealed more than `days` ago; returns their number."""
    key, before, gone = key_of(store), time.time() - days * DAY, 0
    while some := store.seals.cut(before, lambda content: sign_with(key, content)):
        gone += some
    return gone
