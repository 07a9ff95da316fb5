"""What both kinds of connections are made of: the address, the key, and httpx's settings."""

import os
from typing import Any

import httpx

VERSION = "0.2.0.dev0"
KEY_VARIABLE = "SAMEFACE_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 60.0  # of silence; answers of a batch come while it is worked on
CONNECT_SECONDS = 10.0
RETRIES = 4


def settings_of(url: str, key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """The arguments of an httpx client; a missing `key` is taken from the environment."""
    if httpx.URL(url).scheme not in ("http", "https") or not httpx.URL(url).host:
        raise ValueError(f"{url!r} is no address of a server, such as {DEFAULT_URL}")
    headers = {"User-Agent": f"sameface-client/{VERSION}"}
    key = key or os.environ.get(KEY_VARIABLE)
    if key:
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValueError("an API key has printable ASCII characters alone, and no space")
        headers["Authorization"] = f"Bearer {key}"
    timeout = httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, CONNECT_SECONDS))
    return {"base_url": url, "headers": headers, "timeout": timeout}
