"""Keeps web pages out of a server without keys: by the name it is called by, and by the page's origin."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sameface.api.errors import HostNotAllowed, to_problem
from sameface.api.settings import Settings
from sameface.model.access.key_ring import KeyRing
from sameface.model.errors import Forbidden

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
READING = ("GET", "HEAD", "OPTIONS")


class HostCheck:
    """Without API keys, on loopback or where names are allowed by setting, refuses other names in `Host`,
    and writes from foreign origins.

    A page of another site can make a browser send requests to this machine (DNS rebinding, or a plain form);
    a key that the page does not have keeps it out, and where there are no keys, this does.
    """

    def __init__(self, app: ASGIApp, settings: Settings, ring: KeyRing) -> None:
        self.app = app
        self.ring = ring
        self.wanted = settings.is_loopback or bool(settings.allowed_hosts)
        self.names = {*LOOPBACK_NAMES, *(name.lower() for name in settings.allowed_hosts)}
        self.origins = set(settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection event."""
        if scope["type"] == "http" and self.wanted and not self.ring.guarded:
            failure = self.judge(scope["method"], Headers(scope=scope))
            if failure and not await self.is_guarded_by_now():
                return await to_problem(failure, scope)(scope, receive, send)
        return await self.app(scope, receive, send)

    async def is_guarded_by_now(self) -> bool:
        """Whether callers need a key by now; may read the store, so it is called only before a refusal."""
        await self.ring.refresh()
        return self.ring.guarded

    def judge(self, method: str, headers: Headers) -> HostNotAllowed | Forbidden | None:
        """The reason to refuse a request, if there is one."""
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and read_name(f"//{host}") not in self.names:
            return HostNotAllowed(
                "Call this server by localhost or 127.0.0.1, or name the host in SAMEFACE_ALLOWED_HOSTS."
            )
        foreign = origin is not None and origin not in self.origins and read_name(origin) not in self.names
        if foreign and method not in READING:
            return Forbidden("Pages of this origin may not write: name it in SAMEFACE_CORS_ORIGINS.")
        return None


def read_name(address: str) -> str | None:
    """The host name of an address, in lower case and without its port; None if there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
