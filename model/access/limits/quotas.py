"""How much may be enrolled: by the holder of a key, and by all callers together."""

from sameface.model.actor import Quota
from sameface.model.store.access.api_key import ApiKey


def list_quotas(key: ApiKey | None) -> tuple[Quota, ...]:
    """The quotas of a key: its limit of faces, in all the collections that it may touch."""
    if key is None or key.limits.faces is None:
        return ()
    return (Quota("faces", key.limits.faces, key.collections),)


def list_quotas_of_all(faces: int | None, collections: int | None) -> tuple[Quota, ...]:
    """The quotas that all callers share."""
    limits = {"faces": faces, "collections": collections}
    return tuple(Quota(counted, limit) for counted, limit in limits.items() if limit is not None)
