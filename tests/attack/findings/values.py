"""Values that no honest client sends."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import numpy as np

from tests.attack.exchange import exchange, write_request
from tests.attack.findings.outcome import Outcome
from tests.attack.ground import Ground, Server

STAFF = "/v1/collections/staff"
JSON = {"content-type": "application/json"}
LINES = {"content-type": "application/x-ndjson"}
NESTED = "[" * 5_000 + "]" * 5_000


@contextmanager
def one_person(ground: Ground) -> Iterator[tuple[Server, httpx.Client]]:
    """A server with one person in one collection, and a client that may do everything."""
    with ground.serve(request_seconds=10) as server, server.client() as client:
        client.put(STAFF)
        enrolled = enrol(client, ground.photo, person_id="ada", metadata='{"kept": 1}')
        assert enrolled == 201
        yield server, client


def enrol(client: httpx.Client, photo: bytes, **fields: str) -> int:
    """The status of an enrolment by a form."""
    return client.post(f"{STAFF}/people", files={"images": photo}, data=fields).status_code


def is_unharmed(client: httpx.Client) -> bool:
    """Whether the one person, and nobody else, is there as enrolled, and the list can be read."""
    listed = client.get(f"{STAFF}/people")
    return listed.status_code == 200 and [
        (person["person_id"], person["metadata"]) for person in listed.json()["items"]
    ] == [("ada", {"kept": 1})]


def call_a_person_like_a_folder(ground: Ground) -> Outcome:
    """Enrol `..` in three ways, and delete it with the address as it is and as clients normalise it."""
    with one_person(ground) as (server, client):
        embedding = client.post("/v1/embed", files={"image": ground.photo}).json()["faces"][0]["embedding"]
        line = json.dumps({"id": "1", "person_id": "..", "embedding": embedding})
        body = {"person_id": "..", "embeddings": [embedding]}
        answers = [
            enrol(client, ground.photo, person_id=".."),
            client.post(f"{STAFF}/people", json=body).status_code,
            client.post(f"{STAFF}/people/batch", content=line, headers=LINES).json()["error"]["status"],
        ]
        places = (
            "people/..",
            "people/.",
            "people/../",
            "people/ada/faces/..",
            "people/",
            "",
            "people/%2e%2e",
        )
        key = server.authorization()
        deleted = [
            exchange(server.address, write_request("DELETE", f"{STAFF}/{place}", key)).status
            for place in places
        ]
        unharmed = is_unharmed(client)
    return Outcome(
        set(answers) == {422} and set(deleted) <= {404, 405, 422} and unharmed,
        f"no such id is taken ({join(answers)}), {len(places)} ways to delete a parent are {join(deleted)},"
        " and nobody is gone",
    )


def join(statuses: list[int | None]) -> str:
    """Statuses, each once."""
    return ", ".join(map(str, sorted(set(statuses), key=str)))


def break_text(ground: Ground) -> Outcome:
    """Half of a surrogate pair in metadata, by a form, JSON and PATCH."""
    return send_metadata(ground, ['{"a": "\\ud800"}', '{"\\udfff": 1}'])


def send_nan(ground: Ground) -> Outcome:
    """NaN and infinity in metadata."""
    return send_metadata(ground, ['{"a": NaN}', '{"a": [Infinity]}', '{"a": -Infinity}'])


def send_metadata(ground: Ground, bad: list[str]) -> Outcome:
    """Enrol and change somebody with metadata that could not be read back."""
    with one_person(ground) as (_, client):
        answers = []
        for metadata in bad:
            answers.append(enrol(client, ground.photo, metadata=metadata))
            bodies = (f'{{"metadata": {metadata}}}', json.dumps({"metadata": metadata}))
            answers += [
                client.patch(f"{STAFF}/people/ada", content=body, headers=JSON).status_code for body in bodies
            ]
        unharmed = is_unharmed(client)
    return Outcome(
        set(answers) == {422} and unharmed,
        f"{len(answers)} ways to send it are {join(answers)}, nothing is written, the list can be read",
    )


def nest(ground: Ground) -> Outcome:
    """JSON nested five thousand times in every field that takes JSON, and as a line among good ones."""
    with one_person(ground) as (_, client):
        embedding = client.post("/v1/embed", files={"image": ground.photo}).json()["faces"][0]["embedding"]
        answers = [enrol(client, ground.photo, metadata=NESTED)]
        for field in ("embeddings", "metadata"):
            for value in (json.dumps(NESTED), NESTED):
                body = f'{{"{field}": {value}}}'
                answers.append(client.post(f"{STAFF}/people", content=body, headers=JSON).status_code)
        for value in (json.dumps(NESTED), NESTED):
            body = f'{{"embedding": {value}}}'
            answers.append(client.post(f"{STAFF}/identify", content=body, headers=JSON).status_code)
        good = json.dumps({"id": "1", "embedding": embedding})
        lines = "\n".join([good, f'{{"id": "2", "embedding": {NESTED}}}', good])
        sent = client.post(f"{STAFF}/identify/batch", content=lines, headers=LINES)
        failed = ["error" in json.loads(line) for line in sent.text.splitlines()]
        unharmed = is_unharmed(client)
    return Outcome(
        set(answers) == {422} and failed == [False, True, False] and unharmed,
        f"{len(answers)} requests are {join(answers)}; in a batch the bad line fails alone",
    )


def expand_base64(ground: Ground) -> Outcome:
    """Two hundred megabytes of base64 in place of an embedding of two kilobytes."""
    body = b'{"embedding": "' + base64.b64encode(bytes(150_000_000)) + b'"}'
    with one_person(ground) as (server, client):
        before = server.megabytes
        answers = []
        for path in (f"{STAFF}/identify", f"{STAFF}/people"):
            sent = body if path.endswith("identify") else body.replace(b'"embedding": "', b'"embeddings": ["')
            try:
                answers.append(client.post(path, content=sent, headers=JSON).status_code)
            except httpx.TransportError:  # refused, and hung up on, before everything was sent
                answers.append(413)
    grown = ground.measures.peak_megabytes - before
    return Outcome(
        set(answers) <= {413, 422} and grown < 500, f"{join(answers)}, {max(0, grown):.0f} MB more memory"
    )


def ask_for_impossible_rates(ground: Ground) -> Outcome:
    """The smallest number that there is, as an error rate."""
    with one_person(ground) as (_, client):
        files = {"probe": ground.photo, "reference": ground.photo}
        rate = {"extrapolate": True}
        answers = [
            client.post("/v1/verify", files=files, data=rate | {"target_fmr": 5e-324}).status_code,
            client.post(
                f"{STAFF}/identify", files={"image": ground.photo}, data=rate | {"target_fpir": 5e-324}
            ).status_code,
            client.post(f"{STAFF}/identify/batch?target_fpir=5e-324", content="", headers=LINES).status_code,
        ]
    return Outcome(set(answers) == {422}, join(answers))


def stretch_the_boundary(ground: Ground) -> Outcome:
    """A boundary of a form that is longer than its parser takes."""
    with one_person(ground) as (_, client):
        answers = []
        for path in ("/v1/detect", f"{STAFF}/people", f"{STAFF}/identify/batch"):
            for length in (257, 5_000):
                edge = "x" * length
                headers = {"content-type": f"multipart/form-data; boundary={edge}"}
                answers.append(client.post(path, content=f"--{edge}--", headers=headers).status_code)
    return Outcome(set(answers) == {422}, join(answers))


def add_a_slash(ground: Ground) -> Outcome:
    """A slash at the end, without a key, with a Host of the attacker's."""
    with one_person(ground) as (server, client):
        answers = [
            exchange(server.address, write_request(method, f"{path}/", {"Host": "evil.example"}))
            for method in ("GET", "DELETE", "POST")
            for path in ("/v1/collections", STAFF, f"{STAFF}/people/ada", "/health/live")
        ]
        unharmed = is_unharmed(client)
    statuses = [answer.status for answer in answers]
    led = [answer for answer in answers if "location" in answer.headers]
    return Outcome(
        set(statuses) <= {401, 404, 405} and not led and unharmed,
        f"{join(statuses)}, and nobody is led elsewhere",
    )


def retry_after_a_delete(ground: Ground) -> Outcome:
    """The same enrolment with its key again, after the person was deleted."""
    with one_person(ground) as (_, client):
        embedding = np.ones(len(embed(client, ground.photo))).tolist()
        body, headers = {"person_id": "bob", "embeddings": [embedding]}, {"Idempotency-Key": "once"}
        first = client.post(f"{STAFF}/people", json=body, headers=headers)
        again = client.post(f"{STAFF}/people", json=body, headers=headers)
        client.delete(f"{STAFF}/people/bob")
        late = client.post(f"{STAFF}/people", json=body, headers=headers)
        unharmed = is_unharmed(client)
    same = first.json()["faces"] == again.json()["faces"]
    return Outcome(
        (first.status_code, again.status_code, late.status_code) == (201, 201, 404) and same and unharmed,
        f"before the delete the answer is repeated, after it it is {late.status_code} {late.json()['code']}",
    )


def embed(client: httpx.Client, photo: bytes) -> list[float]:
    """The embedding of the face in a photo."""
    return client.post("/v1/embed", files={"image": photo}).json()["faces"][0]["embedding"]
