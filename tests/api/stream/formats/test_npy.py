"""Probes as one array: read while it arrives, and refused with a reason where it is not what it should be."""

import io
import json

import httpx
import numpy as np
import pytest

from sameface.api.stream.formats.npy_reader import NpyReader
from sameface.api.stream.rows import Rows
from tests.api.lines import people, send, to_line
from tests.model.people import random_units
from tests.networks import DIMENSION

PROBES = random_units(40, DIMENSION, 3)


def to_npy(array: np.ndarray, **options: object) -> bytes:
    written = io.BytesIO()
    np.save(written, array, **options)
    return written.getvalue()


def to_header(shape: str) -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header


def ask(client: httpx.Client, staff: str, content: object) -> list[dict]:
    response = client.post(
        f"{staff}/identify/batch", content=content, headers={"Content-Type": "application/x-npy"}
    )
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_rows_are_answered_like_lines(client: httpx.Client, staff: str) -> None:
    send(client, f"{staff}/people/batch", b"".join(people(40)))
    lines = b"".join(to_line(str(n), embedding=row) for n, row in enumerate(PROBES))
    answers = ask(client, staff, to_npy(PROBES))
    assert answers == send(client, f"{staff}/identify/batch", lines)
    assert [answer["results"][0]["candidates"][0]["person_id"] for answer in answers] == [
        f"p{n}" for n in range(40)
    ]


def test_a_row_that_is_no_embedding_fails_alone(client: httpx.Client, staff: str) -> None:
    rows = PROBES[:4].copy()
    rows[1, 3], rows[2] = np.nan, 0
    rows[3] *= 2
    answers = ask(client, staff, to_npy(rows))
    assert [answer.get("error", {}).get("code") for answer in answers] == [
        None,
        "invalid_request",
        "invalid_request",
        None,
    ]
    assert [answer["id"] for answer in answers] == ["0", "1", "2", "3"]
    assert answers[1]["error"]["line"] == 2
    assert answers[3]["results"][0]["normalised"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (to_npy(np.array([[None]], object), allow_pickle=True), "|O"),
        (to_npy(np.asfortranarray(PROBES)), "Fortran"),
        (to_npy(PROBES.astype(">f4")), ">f4"),
        (to_npy(PROBES.astype(np.float64)), "<f8"),
        (to_npy(PROBES[:, 1:]), f"(40, {DIMENSION - 1})"),
        (to_npy(PROBES[0]), f"({DIMENSION},)"),
        (b"PK\x03\x04", "NumPy's format"),
        (b"\x93NUMPY\x09\0", "version"),
        (b"\x93NUMPY\x02\0\xff\xff\xff\x7f", "header may have"),
        (b"\x93NUMPY\x01\0\x10\0(not a dict     ", "cannot be read"),
        (to_npy(PROBES)[:40], "before its header"),
        (to_header(f"(0x{'f' * 5000}, {DIMENSION})"), "too large"),  # Python prints no number this long
        (to_header(f"(1, 0x{'f' * 5000})"), "too large"),
        (b"", "before its header"),
    ],
)
def test_another_array_is_refused_with_a_reason(
    client: httpx.Client, staff: str, content: bytes, reason: str
) -> None:
    [answer] = ask(client, staff, content)
    assert (answer["id"], answer["error"]["code"]) == (None, "invalid_request")
    assert reason in answer["error"]["detail"]


@pytest.mark.parametrize(
    ("content", "rows", "reason"),
    [
        (to_npy(PROBES)[:-DIMENSION], 39, "40 rows, and 39 came"),
        (to_npy(PROBES) + bytes(4), 40, "40 rows, and more came"),
        (to_npy(PROBES).replace(b"(40,", b"(30,"), 30, "30 rows, and more came"),
        (to_npy(PROBES).replace(b"(40,", b"(41,"), 40, "41 rows, and 40 came"),
    ],
)
def test_an_array_of_another_length_is_answered_up_to_there(
    client: httpx.Client, staff: str, content: bytes, rows: int, reason: str
) -> None:
    *answers, last = ask(client, staff, content)
    assert [answer["id"] for answer in answers] == [str(n) for n in range(rows)]
    assert last["id"] is None
    assert reason in last["error"]["detail"]


def test_rows_are_found_wherever_the_chunks_are_cut() -> None:
    body = to_npy(PROBES[:3])
    for size in (1, 7, 64, 129, len(body)):
        reader, found = NpyReader(DIMENSION), []
        for at in range(0, len(body), size):
            found += reader.read(body[at : at + size], last=at + size >= len(body))
        assert all(isinstance(rows, Rows) for rows in found)
        assert np.concatenate([rows.embeddings for rows in found]).tolist() == PROBES[:3].tolist()
        assert [number for rows in found for number in rows.numbers] == [1, 2, 3]


def test_people_are_not_enrolled_by_an_array(client: httpx.Client, staff: str) -> None:
    headers = {"Content-Type": "application/x-npy"}
    response = client.post(f"{staff}/people/batch", content=to_npy(PROBES), headers=headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
