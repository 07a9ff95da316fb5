"""What ordinary clients do all day, so that there is something to compare with."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import httpx

from tests.attack.ground import Server

Step: TypeAlias = Callable[[httpx.Client, int], httpx.Response]

CLIENTS = 4
ADDRESS = "/v1/collections/ordinary"
LINES = {"Content-Type": "application/x-ndjson"}


class Day:
    """The requests of an ordinary day, one kind after the other."""

    def __init__(self, photos: tuple[bytes, ...], embedding: tuple[float, ...]) -> None:
        self.photos = photos
        self.embedding = embedding
        self.steps: tuple[Step, ...] = (
            self.verify,
            self.enrol,
            self.identify,
            self.batch,
            lambda client, _: client.get(f"{ADDRESS}/people"),
            lambda client, number: client.patch(f"{ADDRESS}/people/p{number - 4}", json={"name": "Ada"}),
            lambda client, number: client.delete(f"{ADDRESS}/people/p{number - 5}"),
        )

    def verify(self, client: httpx.Client, number: int) -> httpx.Response:
        """Compare two photos."""
        files = {"probe": self.photo(number), "reference": self.photo(number + 1)}
        return client.post("/v1/verify", files=files)

    def enrol(self, client: httpx.Client, number: int) -> httpx.Response:
        """Enrol somebody by a photo."""
        files, fields = {"images": self.photo(number)}, {"person_id": f"p{number}"}
        return client.post(f"{ADDRESS}/people", files=files, data=fields)

    def identify(self, client: httpx.Client, number: int) -> httpx.Response:
        """Ask who is in a photo."""
        return client.post(f"{ADDRESS}/identify", files={"image": self.photo(number)})

    def batch(self, client: httpx.Client, _: int) -> httpx.Response:
        """Ask who twenty people are."""
        lines = [json.dumps({"id": str(place), "embedding": self.embedding}) for place in range(20)]
        return client.post(f"{ADDRESS}/identify/batch", content="\n".join(lines), headers=LINES)

    def photo(self, number: int) -> bytes:
        """One of the photos."""
        return self.photos[number % len(self.photos)]


def live_a_day(server: Server, day: Day, requests: int) -> Counter[int]:
    """Send so many ordinary requests, and delete the collection in the end; returns the statuses."""
    with server.client() as client:
        client.put(ADDRESS)
        statuses: Counter[int] = Counter()
        turns = range(0, requests, len(day.steps))

        def take_turn(turn: int) -> list[int]:
            return [step(client, turn + place).status_code for place, step in enumerate(day.steps)]

        with ThreadPoolExecutor(CLIENTS) as clients:
            for answered in clients.map(take_turn, turns):
                statuses.update(answered)
        client.delete(ADDRESS)
    return statuses
