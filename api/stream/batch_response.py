"""A batch: entries in, answers out, both at the same time and in flat memory.

Starlette's streaming response listens for a disconnect by reading, which would swallow a body that is still
coming in. So this response reads the body itself: one task reads, one works on what has arrived, one sends.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any, ClassVar, Protocol

from fastapi import Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from sameface.api.body.form import MAX_FIELD_BYTES
from sameface.api.body.read_body import UploadBudget, parse_json, validate
from sameface.api.errors import BodyTooLarge, TimedOut, describe_failure, internal_error
from sameface.api.middleware.request_context import RequestContext, context_of
from sameface.api.settings import Settings
from sameface.api.stream.entries import Entry, reader_for
from sameface.api.stream.mailbox import Mailbox
from sameface.api.stream.unread_answers import UnreadAnswers, UnreadAnswersFull
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

    def prepare(self, sent: Any) -> Any:
        """An entry that fits the schema, as the operation takes it."""

    async def work(self, prepared: list[Any]) -> Sequence[Any]:
        """An answer or an error for each entry; entries that are errors already stay what they are."""

    def present(self, sent: Any, answer: Any) -> BaseModel:
        """A line of the response."""


class BatchResponse(Response):
    """Reads entries, has them worked on in blocks, and sends the answers in their order."""

    media_type = "application/x-ndjson"

    def __init__(self, request: Request, batch: Batch) -> None:
        self.settings: Settings = request.app.state.settings
        self.uploads: UploadBudget = request.app.state.uploads
        self.context: RequestContext = context_of(request.scope)
        self.reader = reader_for(request.headers.get("content-type", ""), self.settings)
        self.batch = batch
        self.background = None
        self.status_code = 200
        self.init_headers()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Read, work and send until the last answer is out or the client is gone."""
        share = min(WAITING_BYTES, self.uploads.limit // FEWEST_STREAMS)
        with self.uploads.reserved(share), closing(UnreadAnswers(self.settings.max_unread_bytes)) as unread:
            mailbox = Mailbox(share)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.read(receive, mailbox))
                    tasks.create_task(self.answer(mailbox, unread))
                    tasks.create_task(self.send(unread, send))
            except* ClientDisconnect:
                pass  # nobody is left to answer

    async def read(self, receive: Receive, mailbox: Mailbox) -> None:
        """Put the entries of the body into the mailbox, as fast as there is room."""
        number, more = 0, True
        while more:
            message = await self.receive(receive)
            if message is None:
                seconds = self.settings.request_seconds
                problem = TimedOut(f"Nothing arrived for {seconds:g} seconds.", limit=seconds)
                return await mailbox.put([Entry(number + 1, problem)], last=True)
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self.renew_deadline()
            more = message.get("more_body", False)
            found = self.reader.read(message.get("body", b""), last=not more)
            number = found[-1].number if found else number
            await mailbox.put(found, last=not more)
        return None

    async def receive(self, receive: Receive) -> Message | None:
        """The next message, or None if nothing moves for the time limit of a request.

        A client that waits for an answer before it sends more is not to blame for how long that takes.
        """
        left = self.settings.request_seconds
        while left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    return await receive()
            left = self.settings.request_seconds - self.context.deadline.idle
        return None

    async def answer(self, mailbox: Mailbox, unread: UnreadAnswers) -> None:
        """Work on the entries block by block; after an error of the stream the rest is ignored."""
        failure: SamefaceError | None = None
        while block := await mailbox.take_block(BLOCK_ENTRIES, BLOCK_BYTES):
            if failure:
                continue
            try:
                with self.context.deadline.suspended():
                    unread.put(await self.answer_block(block))
            except UnreadAnswersFull:
                limit = unread.limit_bytes
                failure = BodyTooLarge(f"More than {limit} bytes of answers were left unread.", limit=limit)
            except Exception:
                log.exception("request %s failed", self.context.request_id)
                failure = internal_error()
        unread.end(self.encode_failure(None, failure) if failure else b"")

    async def answer_block(self, block: list[Entry]) -> bytes:
        """The lines that answer a block, in its order; parsing and encoding run beside the event loop."""
        parsed = await asyncio.to_thread(lambda: [self.parse(entry) for entry in block])
        answers = await self.batch.work([prepared for _, prepared in parsed])

        def encode() -> bytes:
            lines = []
            for entry, (sent, _), answer in zip(block, parsed, answers, strict=True):
                if isinstance(answer, SamefaceError):
                    answer.facts["line"] = entry.number
                    lines.append(self.encode_failure(sent.id if sent else find_id(entry), answer))
                else:
                    lines.append(self.batch.present(sent, answer).model_dump_json().encode() + b"\n")
            return b"".join(lines)

        return await asyncio.to_thread(encode)

    def parse(self, entry: Entry) -> tuple[Any, Any]:
        """Parse one entry: the entry in its schema and prepared for the operation, or the error to answer."""
        content, sent = entry.content, None
        try:
            if isinstance(content, SamefaceError):
                raise content
            if isinstance(content, dict):
                sent = validate(self.batch.schema, content)
            else:
                sent = parse_json(content, self.batch.schema)
            return sent, self.batch.prepare(sent)
        except SamefaceError as error:
            return sent, error

    async def send(self, unread: UnreadAnswers, send: Send) -> None:
        """Send the answers, as fast as the client reads them."""
        headers = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        content = await unread.take()
        await send(headers)
        while content:
            await send({"type": "http.response.body", "body": content, "more_body": True})
            self.renew_deadline()
            content = await unread.take()
        await send({"type": "http.response.body"})

    def renew_deadline(self) -> None:
        """Give the request more time, because something moved."""
        self.context.deadline.renew(PATIENCE * self.settings.request_seconds)

    def encode_failure(self, entry_id: str | None, error: SamefaceError) -> bytes:
        """The line of an entry that failed, or without an id, of the whole stream."""
        return json.dumps({"id": entry_id, "error": describe_failure(error, self.context)}).encode() + b"\n"


def find_id(entry: Entry) -> str | None:
    """The id of an entry that does not fit the schema, if it can be read at all, and cheaply."""
    if not isinstance(entry.content, bytes):
        return entry.id
    if len(entry.content) > MAX_FIELD_BYTES:
        return None
    try:
        found = json.loads(entry.content).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
