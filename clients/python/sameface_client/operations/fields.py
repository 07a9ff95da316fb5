"""What goes into a request: ids into addresses, options into forms, metadata into JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sameface_client.errors import InvalidRequest

ID = re.compile(r"(\.{3,}|\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)", re.ASCII)  # `.` and `..` would be folders
PAGE = 1000  # items of a list that are asked for at once


def check_id(value: str) -> str:
    """The id, which goes into an address; what the server could not take for one is refused here."""
    if len(value) > 128 or not ID.fullmatch(value):
        raise InvalidRequest(
            f"{value!r} cannot be an id or a collection's name: use letters, digits and . _ ~ -"
        )
    return value


def check_text(value: str | None) -> str | None:
    """The text, unless half of a surrogate pair in it could not be sent."""
    if value is not None and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"{value!r} is no valid text.") from error
    return value


def to_json(metadata: Mapping[str, Any]) -> str:
    """Metadata as JSON; what JSON cannot hold is refused."""
    try:
        return json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"Metadata must be JSON: {error}.") from error


def drop_missing(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def to_texts(**options: Any) -> dict[str, str]:
    """The options that have a value, as a form or an address holds them."""
    texts = {True: "true", False: "false"}
    return {
        name: texts[value] if isinstance(value, bool) else str(check_text(str(value)))
        for name, value in drop_missing(options).items()
    }
