"""Encrypted secrets of keys that sign requests: checking a signature takes the secret, not its hash."""

import logging

from sameface.model.access.keys import REKOGNITION, draw_secret, hash_secret, refuse_long_grace
from sameface.model.access.secret_key import secret_key_of
from sameface.model.errors import SecretKeyRefused
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.store import Store

log = logging.getLogger("sameface.access")

PURPOSE = "secrets of keys"


def seal_secret(store: Store, service: str | None, secret: str) -> str | None:
    """`secret` encrypted with the store's secret key; None unless a key for `service` has to keep its own."""
    return secret_key_of(store).encrypt(PURPOSE, secret) if service == REKOGNITION else None


def rotate_key(store: Store, key_id: str, grace_seconds: float) -> tuple[ApiKey, str]:
    """The key with a new secret, and that secret; the one before works for `grace_seconds` more."""
    refuse_long_grace(grace_seconds)
    service = store.keys.get(key_id).service
    secret = draw_secret(service)
    sealed = seal_secret(store, service, secret)
    return store.keys.rotate(key_id, hash_secret(secret), grace_seconds, sealed), secret


def open_secrets(store: Store, key: ApiKey) -> tuple[str, ...]:
    """The secrets that `key` keeps, its own and the one before, unless another secret key encrypted them."""
    try:
        secret_key = secret_key_of(store, make=False)
    except SecretKeyRefused as error:
        log.error("no signature can be checked: %s", error.detail)
        return ()
    kept = [sealed for sealed in (key.sealed, key.former_sealed) if sealed]
    opened = [secret_key.decrypt(PURPOSE, sealed) for sealed in kept]
    if None in opened:
        log.error("the secret of the key %s was encrypted with another secret key: rotate it", key.key_id)
    return tuple(secret for secret in opened if secret is not None)
