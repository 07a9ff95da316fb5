"""Clients that enrol, forget and search through several hosts, and know what they were promised."""

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence

import httpx
import numpy as np

from tests.model.people import random_units
from tests.networks import DIMENSION

STAFF = "/v1/collections/staff"
TIMEOUT_SECONDS = 8.0
PAUSE_SECONDS = 0.1  # after a request that nobody answered
SAME = 0.999  # the similarity of an embedding to itself


class Client:
    """Has people of its own, so that it alone knows who must be found and who must not."""

    def __init__(self, hosts: Sequence[str], number: int, until: float) -> None:
        self.hosts, self.number, self.until = hosts, number, until
        self.chance = random.Random(number)
        self.enrolled: dict[str, np.ndarray] = {}
        self.deleted: dict[str, np.ndarray] = {}
        self.uncertain: set[str] = set()  # the answer never came, or said that the database was away
        self.faults: list[str] = []
        self.answered, self.unanswered = 0, 0

    def work(self) -> None:
        """Enrol, forget and search until the time is over."""
        limits = httpx.Limits(max_keepalive_connections=0)  # each request may reach another worker
        with httpx.Client(timeout=TIMEOUT_SECONDS, limits=limits) as self.http:
            while time.monotonic() < self.until:
                try:
                    self.take_a_turn()
                except Exception as error:  # a fault of the test or of the server: both are told
                    self.faults.append(f"client {self.number}: {error!r}")
                    return

    def take_a_turn(self) -> None:
        draw = self.chance.random()
        if draw < 0.4 or not self.enrolled:
            person_id = f"c{self.number}-{len(self.enrolled) + len(self.deleted) + len(self.uncertain)}"
            [embedding] = random_units(1, DIMENSION, self.chance.randrange(2**40))
            body = {"person_id": person_id, "embeddings": [embedding.tolist()]}
            if self.ask("POST", "/people", 201, body, uncertain=person_id) is not None:
                self.enrolled[person_id] = embedding
                self.look_for(person_id)
        elif draw < 0.6:
            person_id = self.chance.choice(list(self.enrolled))
            embedding = self.enrolled.pop(person_id)
            if self.ask("DELETE", f"/people/{person_id}", 204, uncertain=person_id) is not None:
                self.deleted[person_id] = embedding
                self.look_for(person_id)
        else:
            self.look_for(self.chance.choice([*self.enrolled, *self.deleted]))

    def look_for(self, person_id: str) -> None:
        """Search for somebody through any host: found if and only if enrolled."""
        embedding = self.enrolled.get(person_id, self.deleted.get(person_id))
        answer = self.ask("POST", "/identify", 200, {"embedding": embedding.tolist()})
        if answer is None:
            return
        [result] = answer.json()["results"]
        same = [each["person_id"] for each in result["candidates"] if each["similarity"] > SAME]
        if (person_id in same) is not (person_id in self.enrolled):
            state = "missed" if person_id in self.enrolled else "answered though deleted"
            self.faults.append(f"{person_id} was {state} by {answer.request.url.host}")

    def ask(
        self, method: str, path: str, expected: int, body: object = None, uncertain: str | None = None
    ) -> httpx.Response | None:
        """The answer of a host; None if none came or the database was away, and then a write is uncertain."""
        try:
            url = f"{self.chance.choice(self.hosts)}{STAFF}{path}"
            answer = self.http.request(method, url, json=body)
        except httpx.TransportError:
            answer = None
        if answer is None or answer.status_code in (503, 504):
            self.unanswered += 1
            if uncertain:
                self.uncertain.add(uncertain)
            time.sleep(PAUSE_SECONDS)
            return None
        assert answer.status_code == expected, f"{method} {path}: {answer.text}"
        self.answered += 1
        return answer


def list_everybody(base_url: str) -> set[str]:
    """The ids of all people, as one host lists them."""
    everyone: set[str] = set()
    cursor: str | None = ""
    with httpx.Client(base_url=base_url, timeout=30) as client:
        while cursor is not None:
            page = client.get(f"{STAFF}/people", params={"limit": 1000, "cursor": cursor}).json()
            everyone |= {person["person_id"] for person in page["items"]}
            cursor = page["next_cursor"]
    return everyone


def find_everybody(base_url: str, people: Mapping[str, np.ndarray], seconds: float = 60) -> set[str]:
    """Who of `people` is found by the embedding they were enrolled with; waits while the index is away."""
    lines = [json.dumps({"id": each, "embedding": row.tolist()}) for each, row in people.items()]
    headers = {"Content-Type": "application/x-ndjson"}
    until = time.monotonic() + seconds
    with httpx.Client(base_url=base_url, timeout=120) as client:
        while True:
            said = client.post(f"{STAFF}/identify/batch", content="\n".join(lines), headers=headers)
            answers = [json.loads(line) for line in said.text.splitlines()]
            if not any("error" in each for each in answers):
                break
            assert time.monotonic() < until, said.text[:1000]
            time.sleep(1)
    assert len(answers) == len(people)
    return {
        each["id"]
        for each in answers
        for candidate in each["results"][0]["candidates"]
        if candidate["person_id"] == each["id"] and candidate["similarity"] > SAME
    }


def is_ready(base_url: str) -> bool:
    """Whether a host takes requests."""
    try:
        return httpx.get(f"{base_url}/health/ready", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def run_all(threads: Sequence[threading.Thread]) -> None:
    """Start threads and wait for their end."""
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
