"""Signs the audit: a seal from time to time, and the cut that retention leaves."""

import time

from sameface.model.access.secret_key import SecretKey, secret_key_of
from sameface.model.store.access.seals import Seal
from sameface.model.store.store import Store

PURPOSE = "audit"
DAY = 86_400.0


def sign_with(key: SecretKey, content: bytes) -> str:
    """The signature of a seal's content."""
    return key.sign(PURPOSE, content)


def seal_audit(store: Store) -> Seal | None:
    """Seal what is not sealed yet; returns the seal, None if there is nothing to seal."""
    key = secret_key_of(store)
    return store.seals.add(lambda content: sign_with(key, content), time.time())


def cut_audit(store: Store, days: float) -> int:
    """Delete the entries that were sealed more than `days` ago; returns their number."""
    key, before, gone = secret_key_of(store), time.time() - days * DAY, 0
    while some := store.seals.cut(before, lambda content: sign_with(key, content)):
        gone += some
    return gone
