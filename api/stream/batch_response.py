"""A batch: entries in, answers out, both at the same time and in flat memory.

Starlette's streaming response listens for a disconnect by reading, which would swallow a body that is still
coming in. So this response reads the body itself: one task reads, one works on what has arrived, one sends.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol

from fastapi import Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from sameface.api.body.form import MAX_FIELD_BYTES
from sameface.api.body.read_body import UploadBudget, parse_json, validate
from sameface.api.errors import BodyTooLarge, TimedOut, describe_failure, internal_error
from sameface.api.settings import Settings
from sameface.api.stream.entries import Arrival, Mailbox, reader_for
from sameface.api.stream.unread_answers import Spool, SpoolFull
from sameface.model.errors import SamefaceError

log = logging.getLogger("sameface.requests")

BLOCK_ENTRIES = 256
BLOCK_BYTES = 1_000_000  # some ten photos: their answers flow before the next are looked at
WAITING_BYTES = 8_000_000  # beyond which a body is not read on; one entry may always come in
FEWEST_STREAMS = 4  # that fit into the server's budget for uploads
PATIENCE = 2  # times the limit of a request without any progress, and the connection is cut


class Batch(Protocol):
    """What is done with the entries of a batch; only `work` may wait."""

    schema: ClassVar[type[BaseModel]]

    def prepare(self, entry: Any) -> Any:
        """The entry as it is worked on."""

    async def work(self, prepared: list[Any]) -> Sequence[Any]:
        """An answer or a failure for each; those that failed before are among them and stay what they are."""

    def present(self, entry: Any, answer: Any) -> BaseModel:
        """The answer to an entry as it is sent."""


class BatchResponse(Response):
    """Reads entries, has them worked on in blocks, and sends the answers in their order."""

    media_type = "application/x-ndjson"

    def __init__(self, request: Request, batch: Batch) -> None:
        self.settings: Settings = request.app.state.settings
        self.uploads: UploadBudget = request.app.state.uploads
        self.arrivals = reader_for(request.headers.get("content-type", ""), self.settings)
        self.batch = batch
        self.background = None
        self.status_code = 200
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read, work and send until the last answer is out or the client is gone."""
        share = min(WAITING_BYTES, self.uploads.limit // FEWEST_STREAMS)
        self.uploads.take(share)  # for as long as the stream lasts
        mailbox, spool = Mailbox(share), Spool(self.settings.max_unread_bytes)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.read(scope, receive, mailbox))
                tasks.create_task(self.answer(scope, mailbox, spool))
                tasks.create_task(self.send(scope, spool, send))
        except* ClientDisconnect:
            pass  # nobody is left to answer
        finally:
            spool.close()
            self.uploads.give_back(share)

    async def read(self, scope: Scope, receive: Receive, mailbox: Mailbox) -> None:
        """The body into the mailbox, as fast as there is room."""
        number, more = 0, True
        while more:
            message = await self.receive(scope, receive)
            if message is None:
                seconds = self.settings.request_seconds
                problem = TimedOut(f"Nothing arrived for {seconds:g} seconds.", limit=seconds)
                await mailbox.put([Arrival(number + 1, problem)])
                break
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self.renew(scope)
            more = message.get("more_body", False)
            found = self.arrivals.write(message.get("body", b"")) + ([] if more else self.arrivals.close())
            number = found[-1].number if found else number
            await mailbox.put(found)
        await mailbox.close()

    async def receive(self, scope: Scope, receive: Receive) -> Message | None:
        """The next message, or none if nothing moves for too long.

        A client that waits for an answer before it sends more is not to blame for how long that takes.
        """
        left = self.settings.request_seconds
        while left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    return await receive()
            left = self.settings.request_seconds - scope["state"]["deadline"].idle
        return None

    async def answer(self, scope: Scope, mailbox: Mailbox, spool: Spool) -> None:
        """Answers into the spool, block by block; after a failure the rest of the body is read in vain."""
        failure: SamefaceError | None = None
        while block := await mailbox.take_block(BLOCK_ENTRIES, BLOCK_BYTES):
            if failure:
                continue
            try:
                with scope["state"]["deadline"].suspended():
                    spool.put(await self.answer_block(scope, block))
            except SpoolFull:
                limit = spool.limit_bytes
                failure = BodyTooLarge(f"More than {limit} bytes of answers were left unread.", limit=limit)
            except Exception:
                log.exception("request %s failed", scope["state"]["request_id"])
                failure = internal_error()
        spool.end(encode_failure(None, failure, scope) if failure else b"")

    async def answer_block(self, scope: Scope, block: list[Arrival]) -> bytes:
        """The answers to a block, in its order; what is not waiting is done beside the event loop."""
        entries = await asyncio.to_thread(lambda: [self.parse(arrival) for arrival in block])
        answers = await self.batch.work([prepared for _, prepared in entries])

        def encode() -> bytes:
            lines = []
            for arrival, (entry, _), answer in zip(block, entries, answers, strict=True):
                if isinstance(answer, SamefaceError):
                    answer.facts["line"] = arrival.number
                    lines.append(encode_failure(entry.id if entry else find_id(arrival), answer, scope))
                else:
                    lines.append(self.batch.present(entry, answer).model_dump_json().encode() + b"\n")
            return b"".join(lines)

        return await asyncio.to_thread(encode)

    def parse(self, arrival: Arrival) -> tuple[Any, Any]:
        """The entry as the schema wants it, if it does, and as it is worked on, or what is wrong with it."""
        content, entry = arrival.content, None
        try:
            if isinstance(content, SamefaceError):
                raise content
            if isinstance(content, dict):
                entry = validate(self.batch.schema, content)
            else:
                entry = parse_json(content, self.batch.schema)
            return entry, self.batch.prepare(entry)
        except SamefaceError as error:
            return entry, error

    async def send(self, scope: Scope, spool: Spool, send: Send) -> None:
        """The answers to the client, as fast as it reads them."""
        headers = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        content = await spool.take()
        await send(headers)
        while content:
            await send({"type": "http.response.body", "body": content, "more_body": True})
            self.renew(scope)
            content = await spool.take()
        await send({"type": "http.response.body"})

    def renew(self, scope: Scope) -> None:
        """Something moved: the request may take longer."""
        scope["state"]["deadline"].renew(PATIENCE * self.settings.request_seconds)


def encode_failure(id: str | None, error: SamefaceError, scope: Scope) -> bytes:  # noqa: A002 (the contract's word)
    """The line of an entry that failed, or with no id, of the whole stream."""
    return json.dumps({"id": id, "error": describe_failure(error, scope)}).encode() + b"\n"


def find_id(arrival: Arrival) -> str | None:
    """Whose line it was, if that can be read at all, and easily."""
    if not isinstance(arrival.content, bytes):
        return arrival.id
    if len(arrival.content) > MAX_FIELD_BYTES:
        return None
    try:
        found = json.loads(arrival.content).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
