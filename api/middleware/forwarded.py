"""Sets a request's client and scheme by a trusted proxy's headers, and its path prefix by a setting."""

import ipaddress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sameface.api.settings import Settings

SCHEMES = ("http", "https")


class Forwarded:
    """Takes `X-Forwarded-For` and `X-Forwarded-Proto` from trusted proxies alone, and `root_path` as set."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] == "http":
            scope["root_path"] = prefix = self.settings.root_path
            if prefix and scope["path"] == prefix:
                scope["path"] = f"{prefix}/"
            if self.settings.trusts(scope.get("client")):
                self.believe(scope)
        return await self.app(scope, receive, send)

    def believe(self, scope: Scope) -> None:
        """Set client and scheme to what the headers of a trusted proxy say, where they say it plainly."""
        headers = Headers(scope=scope)
        for hop in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            address = read_address(hop)
            if address is None:
                break
            scope["client"] = (address, 0)
            if not self.settings.trusts(scope["client"]):  # whatever it sent, nobody vouches for
                break
        if headers.get("x-forwarded-proto") in SCHEMES:
            scope["scheme"] = headers["x-forwarded-proto"]


def read_address(hop: str) -> str | None:
    """The IP address of one entry of `X-Forwarded-For`, without its port; None if it is none."""
    host = hop.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None
