"""Blocks of a batch: several under way at a time, worked on and answered in the order of their entries."""

import numpy as np
import pytest

from sameface.api.stream import batch_response as streams
from sameface.model.faces import Floats
from tests.api.collections import make_collection
from tests.api.lines import send, to_line
from tests.model.people import random_units
from tests.networks import DIMENSION


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
        rows, search = random_units(9, DIMENSION, 3), gallery.search

        def fail_for_the_third(collection: object, probes: Floats, *given: object, **named: object) -> object:
            if np.allclose(probes[0], rows[2], atol=1e-6):
                raise RuntimeError("a defect")
            return search(collection, probes, *given, **named)

        monkeypatch.setattr(gallery, "search", fail_for_the_third)
        lines = [to_line(str(number), embedding=row) for number, row in enumerate(rows)]
        answers = send(client, f"{staff}/identify/batch", b"".join(lines))
        assert [each["id"] for each in answers] == ["0", "1", None]
        assert answers[-1]["error"]["code"] == "internal"
