"""Authenticates requests and counts them against limits, before their bodies are read."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameface.api.access.rate_limit_headers import write_headers
from sameface.api.access.reserve import reserve
from sameface.api.request_context import RequestContext, context_of, find_path, lies_under
from sameface.model.access.key_ring import KeyRing
from sameface.model.access.limits.limits import UNCOUNTED, Allowance, Limits
from sameface.model.access.limits.quotas import list_quotas
from sameface.model.actor import Actor, Quota, acting
from sameface.model.errors import SamefaceError

# Finds the key of a request and puts it into the request's context, or raises.
Authenticate: TypeAlias = Callable[[Scope, KeyRing], Awaitable[None]]


class Door:
    """Counts a request against its caller's limits, and runs it with the caller as the current actor."""

    def __init__(self, ring: KeyRing, limits: Limits, quotas: tuple[Quota, ...]) -> None:
        self.ring = ring
        self.limits = limits
        self.quotas = quotas  # of all callers together

    @asynccontextmanager
    async def admitted(self, context: RequestContext) -> AsyncIterator[None]:
        """Count the request against the limits, and run the block on behalf of its caller."""
        context.allowance = self.limits.allowance_of(context.caller)
        await reserve(context.allowance, "requests", 1)
        context.allowance.enter()
        quotas = (*list_quotas(context.caller), *self.quotas)
        try:
            with acting(Actor(context.caller_id, context.request_id, quotas=quotas)):
                yield
        finally:
            context.allowance.leave()


class Admission:
    """ASGI middleware: authenticates requests of guarded paths, applies limits and sets the actor."""

    def __init__(self, app: ASGIApp, door: Door, guards: Mapping[str, Authenticate | None]) -> None:
        self.app = app
        self.door = door
        self.guards = guards  # by prefix of paths; None: the route itself finds out who calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let an HTTP request in, or note why not: `require_admission` then refuses it."""
        authenticate = self.find_guard(scope) if scope["type"] == "http" else None
        if authenticate is None:
            return await self.app(scope, receive, send)
        context = context_of(scope)
        async with AsyncExitStack() as visit:
            try:
                await authenticate(scope, self.door.ring)
                await visit.enter_async_context(self.door.admitted(context))
            except SamefaceError as error:
                context.refusal = error  # raised by the route, so that metrics and logs have its name
            return await self.app(scope, receive, announce(context.allowance, send))

    def find_guard(self, scope: Scope) -> Authenticate | None:
        """The function that authenticates requests of this path; None for a path without one."""
        path = find_path(scope)
        return next((guard for prefix, guard in self.guards.items() if lies_under(path, prefix)), None)


def announce(allowance: Allowance, send: Send) -> Send:
    """Wrap `send` to add the `RateLimit` headers; `send` itself if the caller has no limits."""
    if allowance is UNCOUNTED:
        return send

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(write_headers(allowance.standings()))
        await send(message)

    return send_with_headers
