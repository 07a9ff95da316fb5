"""The hostile inputs of `make attack`, a few hundred of each kind: no error, no traceback, a live server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.exchange import exchange, write_request
from tests.attack.ground import Ground, Networks
from tests.attack.hostile.kinds import KINDS, draw_input
from tests.attack.inputs import Attack, set_scene
from tests.pictures import photo_of

COUNT = 400
SLOW = {"images": 250, "archives": 40}


@pytest.fixture(scope="module")
def attack(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attack]:
    """An attack on a real server with the tiny networks and a key."""
    models = data / "models"
    photos = (photo_of(1), photo_of(2))
    networks = Networks(models / "recogniser", models / "detector", data / "cache", photos)
    ground = Ground(networks, tmp_path_factory.mktemp("attack") / "ground")
    with ground.serve(request_seconds=10, log_level="warning") as server:
        yield Attack(ground, server, set_scene(ground, server))


@pytest.mark.parametrize("kind", KINDS)
def test_no_input_is_an_internal_error_and_the_server_lives(attack: Attack, kind: str) -> None:
    attack.send_all([(kind, seed) for seed in range(SLOW.get(kind, COUNT))])
    assert attack.tally.faults == []
    with attack.server.client() as client:
        assert client.get("/health/ready").status_code == 200
        assert len(client.get(f"{attack.scene.address}/people").json()["items"]) == 2


def test_an_input_is_drawn_by_its_seed_alone(attack: Attack) -> None:
    for kind in KINDS:
        assert draw_input(kind, 7, attack.scene) == draw_input(kind, 7, attack.scene)
        assert draw_input(kind, 7, attack.scene) != draw_input(kind, 8, attack.scene)


BETWEEN = {
    "nothing": b"",
    "empty lines": b"\n\n\r\n \n\t\n",
    "a null": b"null\n",
    "no object": b"[1, 2]\n",
    "half an object": b'{"id": "x", "embedding": [1,\n',
    "two objects": b'{"id": "x"} {"id": "y"}\n',
    "half a character": b'{"id": "\xe6\xbc"}\n',
    "half a surrogate pair": b'{"id": "\\ud800", "embedding": [1]}\n',
    "a byte order mark": b'\xef\xbb\xbf{"id": "x"}\n',
    "UTF-16": '{"id": "x"}'.encode("utf-16-le") + b"\n",
    "zero bytes": b"\0" * 1_000 + b"\n",
    "an id of a thousand characters": b'{"id": "' + b"x" * 1_000 + b'"}\n',
    "an id twice": b'{"id": "x", "id": "y"}\n',
    "brackets without end": b'{"id": "x", "embedding": ' + b"[" * 50_000 + b"\n",
    "a very long line": b'{"id": "' + b"x" * 14_000_000 + b'"}\n',
    "NaN": b'{"id": "x", "embedding": [NaN, Infinity]}\n',
    "a number too large": b'{"id": "x", "embedding": [1e999]}\n',
    "another encoding's newline": b'{"id": "x"}\xe2\x80\xa8{"id": "y"}\n',
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_good_lines_are_answered_whatever_lies_between_them(attack: Attack, between: bytes) -> None:
    good = json.dumps({"id": "good", "embedding": attack.scene.embedding}).encode() + b"\n"
    headers = attack.scene.headers | {"Content-Type": "application/x-ndjson"}
    request = write_request("POST", f"{attack.scene.address}/identify/batch", headers, good + between + good)
    answer = exchange(attack.server.address, request)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert answer.status == 200
    assert ["results" in line for line in (lines[0], lines[-1])] == [True, True]
    assert all(line["error"]["code"] == "invalid_request" for line in lines[1:-1])
