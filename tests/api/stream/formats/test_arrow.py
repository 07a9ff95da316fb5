"""Batches as Arrow IPC streams, written and read by pyarrow, as users do."""

import io
import json
import struct
from importlib import util

import httpx
import numpy as np
import pyarrow as pa
import pytest

from sameface.api.stream.formats import media_types, readers
from sameface.api.stream.formats.arrow_reader import ArrowReader
from tests.api.lines import people, send, to_line
from tests.api.problems import expect
from tests.model.people import random_units
from tests.networks import DIMENSION

PROBES = random_units(40, DIMENSION, 3)
IDS = pa.array([f"probe-{n}" for n in range(40)])
ARROW = "application/vnd.apache.arrow.stream"


def to_lists(rows: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def to_stream(columns: dict[str, object], rows_each: int = 1000, **options: object) -> bytes:
    table, written = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(written, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        stream.write_table(table, max_chunksize=rows_each)
    return written.getvalue()


SOUND = to_stream({"id": IDS, "embedding": to_lists(PROBES)}, rows_each=15)


def post(client: httpx.Client, address: str, content: bytes, **headers: str) -> httpx.Response:
    response = client.post(address, content=content, headers={"Content-Type": ARROW, **headers})
    assert response.status_code == 200, response.text
    return response


def ask(client: httpx.Client, staff: str, content: bytes) -> list[dict]:
    answers = post(client, f"{staff}/identify/batch", content).text.splitlines()
    return [json.loads(line) for line in answers]


def read(response: httpx.Response) -> list[dict]:
    assert response.headers["content-type"] == ARROW
    return pa.ipc.open_stream(response.content).read_all().to_pylist()


@pytest.mark.parametrize(
    "content",
    [
        SOUND,
        to_stream({"embedding": pa.array(PROBES.tolist(), pa.list_(pa.float32())), "id": IDS}),
        to_stream({"id": IDS.cast(pa.large_string()), "embedding": to_lists(PROBES)}),
        to_stream({"id": IDS, "embedding": pa.array(PROBES.tolist(), pa.large_list(pa.float32()))}),
        SOUND[:-8],  # without the mark at its end, which may be left out
    ],
)
def test_rows_are_answered_like_lines(client: httpx.Client, staff: str, content: bytes) -> None:
    send(client, f"{staff}/people/batch", b"".join(people(40)))
    lines = b"".join(to_line(f"probe-{n}", embedding=row) for n, row in enumerate(PROBES))
    assert ask(client, staff, content) == send(client, f"{staff}/identify/batch", lines)


def test_an_answer_in_arrow_has_a_row_per_candidate(client: httpx.Client, staff: str) -> None:
    named = [to_line(str(n), person_id=f"p{n}", name="Ä", embedding=PROBES[n]) for n in range(3)]
    send(client, f"{staff}/people/batch", b"".join(named))
    rows = PROBES[:2].copy()
    rows[1] = np.nan
    content = to_stream({"id": ["a", "b"], "embedding": to_lists(rows)})
    first, second, failed = read(
        post(client, f"{staff}/identify/batch?limit=2&threshold=0.9", content, Accept=ARROW)
    )
    assert (first["id"], first["person_id"], first["name"], first["match"]) == ("a", "p0", "Ä", True)
    assert first["similarity"] == pytest.approx(1, abs=1e-5)
    assert (second["id"], second["match"]) == ("a", False)
    assert second["similarity"] < first["similarity"]
    assert (failed["id"], failed["person_id"], failed["similarity"]) == ("b", None, None)
    assert json.loads(failed["error"])["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("accepted", "answered"),
    [
        (["application/x-ndjson", ARROW], ARROW),  # of two headers
        ([f"application/x-ndjson;q=0.5, {ARROW};q=0.9"], ARROW),
        ([ARROW.upper()], ARROW),
        ([f"{ARROW};q=0"], "application/x-ndjson"),
        ([f"{ARROW}; q=0.00, */*"], "application/x-ndjson"),
        ([f"{ARROW}+zstd"], "application/x-ndjson"),
        (["*/*"], "application/x-ndjson"),
    ],
)
def test_arrow_is_the_answer_if_a_header_asks_for_it(
    client: httpx.Client, staff: str, accepted: list[str], answered: str
) -> None:
    headers = [("Content-Type", ARROW), *(("Accept", each) for each in accepted)]
    response = client.post(f"{staff}/identify/batch", content=SOUND, headers=headers)
    assert response.headers["content-type"] == answered


def test_a_probe_without_candidates_and_a_batch_without_probes_are_answered(
    client: httpx.Client, staff: str
) -> None:
    rows = read(post(client, f"{staff}/identify/batch", SOUND, Accept=ARROW))
    assert [row["id"] for row in rows] == IDS.to_pylist()
    assert {row["person_id"] for row in rows} == {None}
    empty = to_stream({"id": IDS[:0], "embedding": to_lists(PROBES)[:0]})
    assert read(post(client, f"{staff}/identify/batch", empty, Accept=ARROW)) == []


def test_people_are_enrolled_once_however_often_they_are_sent(client: httpx.Client, staff: str) -> None:
    who = pa.array([f"p{n}" for n in range(39)] + [None])
    names = pa.array(["Ada", *[None] * 39])
    content = to_stream({"id": IDS, "embedding": to_lists(PROBES), "person_id": who, "name": names})
    answers = [read(post(client, f"{staff}/people/batch", content, Accept=ARROW, **key)) for key in KEYS]
    assert answers[0] == answers[1]
    assert [row["person_id"] for row in answers[0]][:39] == who.to_pylist()[:39]
    assert client.get(staff).json()["faces"] == 40
    assert client.get(f"{staff}/people/p0").json()["name"] == "Ada"


KEYS = [{"Idempotency-Key": "monday"}] * 2


def test_a_row_that_cannot_be_read_fails_alone(client: httpx.Client, staff: str) -> None:
    values = PROBES[:6].tolist()
    values[1], values[2], values[3][0] = None, values[2][1:], None
    rows = pa.array(values, pa.list_(pa.float32()))
    ids = pa.array(["a", "b", "c", "d", None, "x" * 256])
    answers = ask(client, staff, to_stream({"id": ids, "embedding": rows}))
    assert ["results" in answer for answer in answers] == [True, False, False, False, False, False]
    assert [answer["error"]["line"] for answer in answers[1:]] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (to_stream({"id": IDS}), "lacks the column embedding"),
        (to_stream({"embedding": to_lists(PROBES)}), "lacks the column id"),
        (to_stream({"id": IDS, "embedding": to_lists(PROBES), "name": IDS}), "unknown column name"),
        (to_stream({"id": pa.array(range(40)), "embedding": to_lists(PROBES)}), "utf8"),
        (to_stream({"id": IDS.dictionary_encode(), "embedding": to_lists(PROBES)}), "dictionary-encoded"),
        (to_stream({"id": IDS.cast(pa.string_view()), "embedding": to_lists(PROBES)}), "cannot be read"),
        (to_stream({"id": IDS, "embedding": to_lists(PROBES.astype(np.float64))}), "float32"),
        (to_stream({"id": IDS, "embedding": to_lists(PROBES[:, 1:])}), f"[{DIMENSION}]"),
        (to_stream({"id": IDS, "embedding": to_lists(PROBES)}, compression="zstd"), "compressed"),
        (to_stream({"id": IDS, "embedding": to_lists(PROBES)}, compression="lz4"), "compressed"),
        (SOUND[:100], "in the middle"),
        (b"", "in the middle"),
        (b"ARROW1\0\0", "no Arrow IPC stream"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "is described in"),
        (b"\xff\xff\xff\xff\x08\0\0\0\xff\xff\xff\x7f\0\0\0\0", "cannot be read"),
    ],
)
def test_another_stream_is_refused_with_a_reason(
    client: httpx.Client, staff: str, content: bytes, reason: str
) -> None:
    [answer] = ask(client, staff, content)
    assert (answer["id"], answer["error"]["code"]) == (None, "invalid_request")
    assert reason in answer["error"]["detail"]


def test_a_stream_that_stops_in_the_middle_is_answered_up_to_there(client: httpx.Client, staff: str) -> None:
    *answers, last = ask(client, staff, SOUND[:-200])
    assert [answer["id"] for answer in answers] == IDS.to_pylist()[:30]
    assert (last["id"], last["error"]["code"]) == (None, "invalid_request")


def test_a_record_batch_is_bounded(client: httpx.Client, staff: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "RECORD_BATCH_BYTES", 1_000)
    [answer] = ask(client, staff, SOUND)
    assert answer["error"]["limit"] == 1_000


def test_rows_that_take_no_room_in_the_stream_are_bounded(
    client: httpx.Client, staff: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of nulls is four bytes there, and would be an embedding in memory."""
    monkeypatch.setattr(readers, "RECORD_BATCH_BYTES", 100_000)
    most = 100_000 // (4 * DIMENSION)
    answers = [ask(client, staff, to_stream(nulls(count), rows_each=count)) for count in (most, most + 1)]
    assert len(answers[0]) == most
    [refused] = answers[1]
    assert (refused["id"], refused["error"]["limit"]) == (None, 100_000)
    assert "write smaller record batches" in refused["error"]["detail"]


def nulls(count: int) -> dict[str, object]:
    return {"id": pa.nulls(count, pa.string()), "embedding": pa.nulls(count, pa.list_(pa.float32()))}


def test_columns_that_are_longer_than_their_batch_are_refused() -> None:
    content = to_stream({"id": IDS[:37], "embedding": to_lists(PROBES[:37])})
    length, reasons = struct.pack("<q", 37), []
    for place in [at for at in range(len(content)) if content.startswith(length, at)]:
        wrong = content[:place] + struct.pack("<q", 36) + content[place + 8 :]
        [found] = ArrowReader(DIMENSION, (), 8_000_000).read(wrong, last=True)
        reasons.append(str(found.content))
    assert any("differ in length" in reason for reason in reasons)


def test_no_damage_to_a_stream_gets_past_the_reader() -> None:
    random = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(SOUND)
        for place in random.integers(0, len(damaged), 3):
            damaged[place] = random.integers(0, 256)
        found = ArrowReader(DIMENSION, (), 8_000_000).read(bytes(damaged), last=True)
        assert sum(rows.count for rows in found) <= 41


def test_without_the_extra_the_reason_is_said(
    client: httpx.Client, staff: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = util.find_spec
    monkeypatch.setattr(
        media_types, "find_spec", lambda name: None if name == "nanoarrow" else find_spec(name)
    )
    for headers in ({"Content-Type": ARROW}, {"Content-Type": "application/x-ndjson", "Accept": ARROW}):
        response = client.post(f"{staff}/identify/batch", content=SOUND, headers=headers)
        expect(response, 415, "unsupported_media_type")
        assert "sameface[arrow]" in response.json()["detail"]
