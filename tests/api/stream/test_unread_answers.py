"""Answers that wait for a slow client: in order, bounded, and with a last word even on a full disk."""

import asyncio
import errno
import io

import httpx
import pytest

from sameface.api.stream import unread_answers
from sameface.api.stream.unread_answers import UnreadAnswers, UnreadAnswersFull
from tests.api.collections import make_collection
from tests.api.lines import send, to_line
from tests.model.people import random_units
from tests.networks import DIMENSION


class FullDisk(io.BytesIO):
    """A file that takes a few kilobytes, and half of what comes next."""

    def write(self, content: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(content) > 5_000:
            super().write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


async def read_all(answers: UnreadAnswers) -> bytes:
    content = b""
    while chunk := await answers.take():
        content += chunk
    return content


def test_what_was_kept_comes_out_whole_and_the_last_word_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_answers, "open_half", FullDisk)

    async def overflow() -> bytes:
        answers = UnreadAnswers(1_000_000)
        answers.put(b"a" * 4_000)
        with pytest.raises(UnreadAnswersFull):
            answers.put(b"b" * 4_000)
        answers.end(b"the end")
        return await read_all(answers)

    assert asyncio.run(overflow()) == b"a" * 4_000 + b"the end"


def test_a_batch_ends_with_an_error_line_where_the_temporary_folder_is_full(
    serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_answers, "open_half", FullDisk)
    with serve() as client:
        assert isinstance(client, httpx.Client)
        staff = make_collection(client)
        line = to_line("x", embedding=random_units(1, DIMENSION, 4)[0])
        answers = send(client, f"{staff}/identify/batch", line * 3_000)
    assert answers[-1]["error"]["code"] == "body_too_large"
    assert all("results" in answer for answer in answers[:-1])
