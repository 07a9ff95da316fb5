"""Lets a request in: who calls, and within which limits, is known before anything else is looked at."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.access.caller import identify
from sameface.api.access.rate_limit_headers import write_headers
from sameface.api.middleware.request_context import context_of
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.limits import UNCOUNTED, Allowance, Limits
from sameface.model.access.quotas import list_quotas
from sameface.model.actor import Actor, Quota, acting
from sameface.model.errors import SamefaceError

GUARDED = "/v1/"


class Admission:
    """Asks for a key under /v1, once there has been one, keeps the limits of the caller and of all, and runs
    the rest on behalf of the caller."""

    def __init__(self, app: ASGIApp, ring: KeyRing, limits: Limits, quotas: tuple[Quota, ...]) -> None:
        self.app = app
        self.ring = ring
        self.limits = limits
        self.quotas = quotas  # of all callers together

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let an HTTP request in, or note why not: `require_admission` then refuses it."""
        if scope["type"] != "http" or not find_path(scope).startswith(GUARDED):
            return await self.app(scope, receive, send)
        context = context_of(scope)
        allowance = UNCOUNTED
        try:
            await identify(scope, self.ring)
            allowance = self.limits.allowance_of(context.caller)
            context.allowance = allowance.enter()
        except SamefaceError as error:
            context.refusal = error  # raised by the route, so that metrics and logs have its name
            return await self.app(scope, receive, announce(allowance, send))
        quotas = (*list_quotas(context.caller), *self.quotas)
        try:
            with acting(Actor(context.caller_id, context.request_id, quotas=quotas)):
                return await self.app(scope, receive, announce(context.allowance, send))
        finally:
            context.allowance.leave()


def find_path(scope: Scope) -> str:
    """The path of a request as routes have it, without the prefix that a proxy has put before it."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def announce(allowance: Allowance, send: Send) -> Send:
    """`send` with the headers that say how far the caller is from its limits, if it has any."""
    if allowance is UNCOUNTED:
        return send

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(write_headers(allowance.standings()))
        await send(message)

    return send_with_headers
