"""The headers that tell a caller how far it is from its limits: draft-ietf-httpapi-ratelimit-headers-11."""

from collections.abc import Sequence

from sameface.model.access.limits.counters import WINDOW_SECONDS
from sameface.model.access.limits.limits import Standing


def write_headers(standings: Sequence[Standing]) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit`, as lists of structured fields; none without limits."""
    if not standings:
        return {}
    return {
        "RateLimit-Policy": ", ".join(write_policy(standing) for standing in standings),
        "RateLimit": ", ".join(write_standing(standing) for standing in standings),
    }


def write_policy(standing: Standing) -> str:
    """A limit: its quota, and its window or its unit."""
    if standing.seconds is None:
        return f'"{standing.name}";q={standing.quota};qu="concurrent-requests"'
    unit = ';qu="photos"' if standing.name.endswith("photos") else ""
    return f'"{standing.name}";q={standing.quota}{unit};w={WINDOW_SECONDS}'


def write_standing(standing: Standing) -> str:
    """What remains of a limit, and the seconds until there is more."""
    wait = "" if standing.seconds is None else f";t={standing.seconds}"
    return f'"{standing.name}";r={standing.remaining}{wait}'
