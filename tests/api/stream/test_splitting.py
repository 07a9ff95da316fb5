"""What a body is split into: where that is done, and what happens if it fails."""

import json
import threading
from collections.abc import Iterator

import httpx
import pytest

from sameface.api.stream.entries import LineReader
from sameface.api.stream.formats.arrow_reader import ArrowReader
from tests.api.lines import to_line
from tests.api.stream.formats.test_arrow import ARROW, IDS, to_lists, to_stream
from tests.conftest import wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION


def test_a_few_bytes_that_complete_much_are_read_off_the_event_loop(
    client: httpx.Client, staff: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = random_units(len(IDS) * 10, DIMENSION, 3)
    names = [str(number) for number in range(len(probes))]
    content = to_stream({"id": names, "embedding": to_lists(probes)})
    read, threads = ArrowReader.read, []

    def watch(reader: ArrowReader, chunk: bytes, *, last: bool) -> list:
        found = read(reader, chunk, last=last)
        threads.append((len(chunk), threading.current_thread().name, len(found)))
        return found

    def parts() -> Iterator[bytes]:
        yield content[:-20]
        wait_for(lambda: sum(length for length, *_ in threads) == len(content) - 20)
        yield content[-20:]

    monkeypatch.setattr(ArrowReader, "read", watch)
    response = client.post(f"{staff}/identify/batch", content=parts(), headers={"Content-Type": ARROW})
    assert len(response.text.splitlines()) == len(probes)
    [(length, thread)] = [(length, thread) for length, thread, found in threads if found]
    assert length == 20
    assert thread.startswith("sameface-lines")


@pytest.mark.parametrize("padding", [0, 50_000])
def test_a_defect_of_a_reader_ends_the_stream_with_a_line(
    client: httpx.Client,
    staff: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    padding: int,
) -> None:
    """On the event loop or, if there is much to read, on the thread for lines."""
    read = LineReader.read
    [good] = random_units(1, DIMENSION, 4)
    seen: list[bytes] = []

    def fail_at_poison(reader: LineReader, chunk: bytes, *, last: bool) -> list:
        seen.append(chunk)
        if b"poison" in chunk:
            raise RecursionError("a defect")
        return read(reader, chunk, last=last)

    def parts() -> Iterator[bytes]:
        yield to_line("1", embedding=good) + to_line("2", embedding=good)
        wait_for(lambda: bool(seen))
        for _ in range(30):  # all of it is taken, whoever reads no answer before
            yield b"poison" + b" " * padding + b"\n" + to_line("3", embedding=good)

    monkeypatch.setattr(LineReader, "read", fail_at_poison)
    headers = {"Content-Type": "application/x-ndjson"}
    response = client.post(f"{staff}/identify/batch", content=parts(), headers=headers)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert [answer["id"] for answer in answers] == ["1", "2", None]
    assert answers[-1]["error"]["code"] == "internal"
    assert caplog.text.count("RecursionError: a defect") == 1
