"""Blocks of a batch: several under way at a time, worked on and answered in the order of their entries."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sameface.api.stream import batch_response as streams
from sameface.model.access.audit import decisions as audit
from sameface.model.faces import Floats
from sameface.model.runtime.device import available_cores
from tests.api.collections import make_collection
from tests.api.lines import send, to_line
from tests.conftest import wait_for
from tests.model.people import random_units
from tests.networks import DIMENSION
from tests.pictures import photo_of


def test_blocks_are_answered_in_the_order_of_their_entries(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is searched, the next is parsed and the one before is encoded."""
    monkeypatch.setattr(streams, "BLOCK_ENTRIES", 3)
    with serve() as client:
        staff = make_collection(client)
        rows = random_units(50, DIMENSION, 3)
        lines = b"".join(to_line(str(number), embedding=row) for number, row in enumerate(rows))
        answers = send(client, f"{staff}/identify/batch", lines)
        assert [each["id"] for each in answers] == [str(number) for number in range(50)]
        same = b"".join(
            to_line(str(number), person_id="ada", embedding=row) for number, row in enumerate(rows)
        )
        enrolled = send(client, f"{staff}/people/batch", same)
        faces = client.get(f"{staff}/people/ada").json()["faces"]
        assert [face["face_id"] for face in faces] == [each["faces"][0]["face_id"] for each in enrolled]


def test_what_was_answered_before_a_failure_is_sent_and_what_comes_after_is_dropped(
    serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BLOCK_ENTRIES", 1)
    with serve() as client:
        staff = make_collection(client)
        gallery = client.app.state.gallery
        rows, search = random_units(9, DIMENSION, 3), gallery.search_newest

        def fail_for_the_third(collection: object, probes: Floats, *given: object, **named: object) -> object:
            if np.allclose(probes[0], rows[2], atol=1e-6):
                raise RuntimeError("a defect")
            return search(collection, probes, *given, **named)

        monkeypatch.setattr(gallery, "search_newest", fail_for_the_third)
        lines = [to_line(str(number), embedding=row) for number, row in enumerate(rows)]
        answers = send(client, f"{staff}/identify/batch", b"".join(lines))
        assert [each["id"] for each in answers] == ["0", "1", None]
        assert answers[-1]["error"]["code"] == "internal"


def test_photos_of_two_blocks_take_no_more_places_than_there_are_threads(
    serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BLOCK_ENTRIES", 3)
    with serve(threads=2, queue=1) as client:
        staff = make_collection(client)
        pipeline, taken = client.app.state.pipeline, []
        embed = pipeline.embed_faces

        def watch(*look: object) -> object:
            time.sleep(0.05)
            taken.append(pipeline.queue.taken)
            return embed(*look)

        monkeypatch.setattr(pipeline, "embed_faces", watch)
        answers = send(client, f"{staff}/identify/batch", to_line("x", image=photo_of(1)) * 12)
        assert ["results" in answer for answer in answers] == [True] * 12
        assert (len(taken), max(taken)) == (12, 2)


def test_batches_that_wait_for_room_in_the_audit_leave_the_search_threads_to_others(
    serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_WAITING", 10)
    monkeypatch.setattr(audit, "ROOM_SECONDS", 30.0)
    count = available_cores() + 4  # there is one search thread more than cores
    with serve() as client, ThreadPoolExecutor(count) as senders:
        staff = make_collection(client)
        gallery, may_write = client.app.state.gallery, threading.Event()
        record = gallery.store.audit.record

        def write_later(entries: Sequence[object]) -> None:
            assert may_write.wait(30)
            record(entries)

        monkeypatch.setattr(gallery.store.audit, "record", write_later)
        search, searched = gallery.search_newest, []
        monkeypatch.setattr(gallery, "search_newest", lambda *a, **b: searched.append(1) or search(*a, **b))
        lines = b"".join(
            to_line(str(n), embedding=row) for n, row in enumerate(random_units(8, DIMENSION, 3))
        )
        try:
            sent = [senders.submit(send, client, f"{staff}/identify/batch", lines) for _ in range(count)]
            wait_for(lambda: len(searched) == count)
        finally:
            may_write.set()
        assert [len(each.result()) for each in sent] == [8] * count
