"""A batch: reads entries and sends answers at the same time, in constant memory.

Starlette's StreamingResponse notices a disconnect by receiving messages, which would swallow a body that is
still arriving. So this response reads the body itself: one task reads, one answers the entries, one sends.
"""

import asyncio
import logging
import time
from asyncio import Queue, Task
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from fastapi import Request
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from sameface.api.body.form import MAX_FIELD_BYTES
from sameface.api.body.read_body import UploadBudget, count_photos, find_photos, parse_json, validate
from sameface.api.errors import BodyTooLarge, TimedOut, describe_failure, internal_error
from sameface.api.request_context import RequestContext, context_of
from sameface.api.settings import Settings
from sameface.api.stream.answers import Answers, Asked
from sameface.api.stream.entries import Entry
from sameface.api.stream.formats.readers import reader_for
from sameface.api.stream.formats.writers import writer_for
from sameface.api.stream.mailbox import Mailbox
from sameface.api.stream.rows import Rows
from sameface.api.stream.unread_answers import UnreadAnswers, UnreadAnswersFull
from sameface.model.errors import Overloaded, SamefaceError

log = logging.getLogger("sameface.requests")

Result = TypeVar("Result")
Blocks: TypeAlias = Queue[Task[bytes | None] | None]  # in their order, and None at the end
Parse: TypeAlias = Callable[[Entry], tuple[str | None, Any]]  # an id, and what was sent or its error

BLOCK_ENTRIES = 1024
BLOCK_BYTES = 1_000_000  # about ten photos: their answers are sent before the next block is begun
IDLE_BYTES = 256_000  # that a batch reserves before anything has come
PROGRESS_BYTES = 16_384  # that count as progress without a complete entry
WAIT_SECONDS = 0.05
WAITING_BYTES = 8_000_000  # of entries in the mailbox, beyond which reading pauses; one entry may be larger
FEWEST_STREAMS = 4  # batches at once that fit into the upload budget
# Lines are parsed and written one block at a time: several threads would only take turns with each other, and
# with the event loop, which would have to wait for all of them.
LINE_THREAD = ThreadPoolExecutor(1, thread_name_prefix="sameface-lines")
PATIENCE = 2  # times `request_seconds` without progress, after which the connection is closed


class Batch(Protocol):
    """The operation of a batch; `prepare` runs in a thread, `work` on the event loop."""

    schema: ClassVar[type[BaseModel]]  # of an entry
    media_types: ClassVar[tuple[str, ...]]  # of the bodies that it takes
    texts: ClassVar[tuple[str, ...]]  # columns of an Arrow stream, beside `id` and `embedding`
    at_once: ClassVar[int]  # blocks that are worked on; they begin in their order

    @property
    def dimension(self) -> int:
        """The numbers of an embedding."""

    def prepare(self, block: Sequence[Entry | Rows], parse: Parse) -> tuple[Asked, Any]:
        """Who asked, and the operation's input; `parse` reads an entry by the schema."""

    async def work(self, asked: Asked, prepared: Any) -> Answers:
        """The answers to a block."""


class BatchResponse(Response):
    """Reads entries, answers them in blocks, and sends the answers in the order of the entries."""

    def __init__(self, request: Request, batch: Batch) -> None:
        self.settings: Settings = request.app.state.settings
        self.uploads: UploadBudget = request.app.state.uploads
        self.context: RequestContext = context_of(request.scope)
        self.reader = reader_for(
            request.headers.get("content-type", ""),
            self.settings,
            batch.dimension,
            batch.texts,
            batch.media_types,
        )
        self.broken = False  # once reading has failed: the rest of the body is dropped
        self.writer = writer_for(",".join(request.headers.getlist("accept")), self.describe)
        self.media_type = self.writer.media_type
        self.batch = batch
        self.photos = find_photos(batch.schema)
        self.background = None
        self.unnoted_bytes = 0
        self.failure: SamefaceError | None = None  # of the whole batch
        self.working = asyncio.Semaphore(batch.at_once)  # held while a block is worked on
        self.status_code = 200
        self.init_headers()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Read, work and send until the last answer is out or the client is gone."""
        most = min(WAITING_BYTES, self.uploads.limit // FEWEST_STREAMS)
        self.least_bytes = min(IDLE_BYTES, most)
        with (
            self.uploads.reserved(self.least_bytes) as self.reservation,
            closing(UnreadAnswers(self.settings.max_unread_bytes)) as unread,
        ):
            mailbox = Mailbox(most)
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
            content, more = message.get("body", b""), message.get("more_body", False)
            found = await self.split(content, number, last=not more)
            self.note_progress(len(content), entries=len(found))
            number = found[-1].number if found else number
            await mailbox.put(found, last=not more)
            if not await self.find_room(mailbox):
                busy = Overloaded("Too many uploads are under way; try again later.", retry_after_seconds=1)
                return await mailbox.put([Entry(number + 1, busy)], last=True)
        return None

    async def split(self, content: bytes, number: int, *, last: bool) -> Sequence[Entry | Rows]:
        """The entries after `number` that `content` completes, or the error `internal` if reading it fails.

        What may be thousands is split off the event loop; a few bytes complete many of them in some formats.
        """
        if self.broken:
            return []
        try:
            if len(self.reader.held) + len(content) < PROGRESS_BYTES:
                return self.reader.read(content, last=last)
            return await run_on_line_thread(lambda: self.reader.read(content, last=last))
        except Exception:
            log.exception("request %s failed", self.context.request_id)
            self.broken = True
            return [Entry(number + 1, internal_error())]

    def note_progress(self, received: int, *, entries: int) -> None:
        """Renew the deadline if entries are complete or many bytes came: a byte now and then does not."""
        self.unnoted_bytes += received
        if entries or self.unnoted_bytes >= PROGRESS_BYTES:
            self.unnoted_bytes = 0
            self.renew_deadline()

    async def find_room(self, mailbox: Mailbox) -> bool:
        """Reserve the bytes that the batch holds, once the server has room for them.

        Batches that wait for each other would do so for ever: one that none of its entries leaves gives up.
        """
        held, ends = 0, 0.0
        while True:
            before, held = held, max(len(self.reader.held) + mailbox.held_bytes, self.least_bytes)
            try:
                self.reservation.grow(held - self.reservation.count)
                return True
            except Overloaded:
                self.renew_deadline()  # it is not the client who is slow
                if held != before:
                    ends = time.monotonic() + self.settings.request_seconds
                if time.monotonic() > ends:
                    return False
                await asyncio.sleep(WAIT_SECONDS)

    async def receive(self, receive: Receive) -> Message | None:
        """The next ASGI message, or None after `request_seconds` without progress.

        Time in which the server answers a block does not count: the client may be waiting for that answer.
        """
        left = self.settings.request_seconds
        while left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    return await receive()
            left = self.settings.request_seconds - self.context.deadline.idle
        return None

    async def answer(self, mailbox: Mailbox, unread: UnreadAnswers) -> None:
        """Answer the entries block by block; once the whole stream has failed, drop the rest."""
        unread.put(self.writer.start())
        under_way: Blocks = Queue(1)
        failed = False
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.start_blocks(mailbox, under_way, tasks))
            while task := await under_way.get():
                answers = await task
                if failed or answers is None:
                    failed = True
                    continue
                try:
                    unread.put(answers)
                except UnreadAnswersFull:
                    failed, limit = True, unread.limit_bytes
                    self.failure = BodyTooLarge(
                        f"There is no room for more answers that are left unread: {limit} bytes at most.",
                        limit=limit,
                    )
        unread.end(self.writer.end(self.failure))

    async def start_blocks(self, mailbox: Mailbox, under_way: Blocks, tasks: asyncio.TaskGroup) -> None:
        """Start a task per block: while one is worked on, the next is parsed and the last one is encoded."""
        while block := await mailbox.take_block(BLOCK_ENTRIES, BLOCK_BYTES):
            await under_way.put(tasks.create_task(self.answer_block(block)))
        await under_way.put(None)

    async def answer_block(self, block: Sequence[Entry | Rows]) -> bytes | None:
        """The answers to `block`, in its order, or None once the batch has failed.

        Parsing and encoding run on a thread.
        """
        try:
            with self.context.deadline.suspended():
                asked, prepared = await run_on_line_thread(lambda: self.batch.prepare(block, self.parse))
                async with self.working:
                    if self.failure:
                        return None
                    answers = await self.batch.work(asked, prepared)
                return await run_on_line_thread(lambda: self.writer.write(answers))
        except Exception:
            log.exception("request %s failed", self.context.request_id)
            self.failure = internal_error()
            return None

    def parse(self, entry: Entry) -> tuple[str | None, Any]:
        """The id of an entry, and the entry in its schema or the error to answer."""
        content = entry.content
        try:
            if isinstance(content, SamefaceError):
                raise content
            sent: Any
            if isinstance(content, dict):
                sent = validate(self.batch.schema, content)
            else:
                sent = parse_json(content, self.batch.schema)
        except SamefaceError as error:
            return find_id(entry), error
        try:
            photos, allowance = count_photos(sent, self.photos), self.context.allowance
            if not allowance.try_reserve("photos", photos):  # on a thread, which may wait for the store
                allowance.reserve("photos", photos)
            allowance.take_photos(photos)
        except SamefaceError as error:
            return sent.id, error
        return sent.id, sent

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
        """Renew the deadline after a message was received or sent."""
        self.context.deadline.renew(PATIENCE * self.settings.request_seconds)

    def describe(self, error: SamefaceError) -> dict[str, Any]:
        """The problem's fields for `error`."""
        return describe_failure(error, self.context)


async def run_on_line_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`, called on the thread for lines."""
    return await asyncio.get_running_loop().run_in_executor(LINE_THREAD, work)


def find_id(entry: Entry) -> str | None:
    """The id of an entry that does not fit the schema, or None if it is missing or the line is long."""
    if not isinstance(entry.content, bytes):
        return entry.id
    if len(entry.content) > MAX_FIELD_BYTES:
        return None
    try:
        found = from_json(entry.content).get("id")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None
