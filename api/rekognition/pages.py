"""Lists in pages: `NextToken` names the last entry of a page, in a form that no client reads."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sameface.api.rekognition.errors import BadPageToken

Entry = TypeVar("Entry")

NEVER_HANDED_OUT = "This NextToken was never handed out: begin with the first page."
LONGEST_NUMBER = 18  # digits, that a database's integer holds


def read_token(token: str | None) -> str:
    """The place that a token names, empty without a token."""
    try:
        return base64.b64decode(token or "", altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadPageToken(NEVER_HANDED_OUT) from None


def read_number(token: str | None) -> int:
    """The place that a token names, where places are numbers; 0 without a token."""
    place = read_token(token) or "0"
    if not (place.isascii() and place.isdecimal()) or len(place) > LONGEST_NUMBER:
        raise BadPageToken(NEVER_HANDED_OUT)
    return int(place)


def turn_page(
    entries: Sequence[Entry], limit: int, place_of: Callable[[Entry], str]
) -> tuple[Sequence[Entry], dict[str, Any]]:
    """The first `limit` entries and, if there are more, the token of the next page."""
    if len(entries) <= limit:
        return entries, {}
    shown = entries[:limit]
    return shown, {"NextToken": base64.urlsafe_b64encode(place_of(shown[-1]).encode()).decode()}
