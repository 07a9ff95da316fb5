"""The collection of a service, which the service's own key opens, so that clients need no change."""

import time

from sameface.model.access.keys import COMPREFACE_SERVICES, draft_key, find_fault, hash_secret, read_uuid
from sameface.model.gallery.gallery import Gallery
from sameface.model.store.access.api_key import ApiKey
from sameface.model.store.people.person_ids import list_ids
from sameface.model.store.records import MAX_NAME, Collection
from sameface.model.store.store import Store
from sameface.model.upkeep.compreface.source import Service
from sameface.model.upkeep.errors import ComprefaceRefused

RECOGNITION = COMPREFACE_SERVICES["recognition"]
SCOPES = ("search", "write")  # what a key of CompreFace may do


def open_collection(gallery: Gallery, service: Service, *, store_crops: bool) -> Collection:
    """The collection that the service's key is bound to; key and collection are made if they are missing.

    The key comes first: by it, the next run finds the collection that a killed one was about to make.
    """
    secret = read_uuid(service.api_key)
    key = find_key(gallery.store, secret)
    if key is None:
        name = choose_name(gallery.store, service.name)
        draft = draft_key(secret, service.name[:MAX_NAME], SCOPES, [name], service=RECOGNITION)
        key = gallery.store.keys.add(draft)
    [name] = key.collections or ()
    return gallery.get_or_create_collection(name, store_crops=store_crops)


def find_key(store: Store, secret: str) -> ApiKey | None:
    """The key of the store with this secret, if there is one; raises if it is for something else."""
    sha256 = hash_secret(secret)
    found = next((key for key in store.keys.page() if sha256 in (key.sha256, key.former_sha256)), None)
    if found is None:
        return None
    fault = find_fault(found, sha256, time.time())
    if found.service != RECOGNITION:
        fault = "It is for something else than recognition."
    if fault:
        raise ComprefaceRefused(f"The service's key is in the store, as {found.key_id}. {fault}")
    return found


def choose_name(store: Store, service: str) -> str:
    """The name of a service's collection: its own as far as it can be one, and one that is free."""
    taken = {collection.name for collection in store.collections.page()}
    taken |= {name for key in store.keys.page() for name in key.collections or ()}
    return next(name for name in list_ids(service) if name not in taken)
