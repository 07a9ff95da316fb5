"""Sends hostile inputs of all kinds to a server, and notes whatever should not happen."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from sameface.model.errors import SamefaceError
from sameface.model.store.store import Store
from sameface.model.upkeep.export_import import export_collection, import_collection
from tests.attack.exchange import Answer, exchange
from tests.attack.ground import Ground, Server, find_faults
from tests.attack.hostile.kinds import KINDS, draw_input
from tests.attack.hostile.request import Request, Scene
from tests.model.upkeep.archives import read_lines

CLIENTS = 6
PATIENCE = 60.0  # seconds in which every whole request must have an answer
SHORT_PATIENCE = 0.3  # for what may have none
MOST_FAULTS = 20
REST_SECONDS = 12.0  # in which the server has tidied up once
TIDY_EVERY = 2_000  # inputs
SMALL_BODY = 50_000  # bytes that are on their way before a server can refuse them

Report = Callable[[int], None]  # called with the number of inputs so far


@dataclass(slots=True)
class Tally:
    """The answers by kind, and what should not have happened."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def set_scene(ground: Ground, server: Server) -> Scene:
    """A collection with two people, and an export of it."""
    name, archive = "attacked", ground.folder / "scene.gz"
    with server.client() as client:
        found = client.post("/v1/embed", files={"image": ground.photo}).json()
        scene = Scene(
            headers=server.authorization(),
            collection=name,
            embedding=tuple(found["faces"][0]["embedding"]),
            photos=ground.networks.photos,
            archive=(),
        )
        furnish(server, scene)
    with closing(Store(ground.data / "gallery.db")) as store:
        export_collection(store, name, archive)
    return replace(scene, archive=tuple(read_lines(archive)))


def furnish(server: Server, scene: Scene) -> None:
    """Delete all collections, as an owner may, and make that of the scene with two people again."""
    with server.client() as client:
        for item in client.get("/v1/collections", params={"limit": 1000}).json()["items"]:
            client.delete(f"/v1/collections/{item['name']}")
        client.put(scene.address)
        for person in ("i1", "j1"):
            body = {"person_id": person, "name": "Ada", "embeddings": [scene.embedding]}
            client.post(f"{scene.address}/people", json=body)


class Attack:
    """Hostile inputs on their way to one server."""

    def __init__(self, ground: Ground, server: Server, scene: Scene) -> None:
        self.ground = ground
        self.server = server
        self.scene = scene
        self.tally = Tally()
        self._log_read = 0
        self._importing = threading.Lock()

    def send_all(self, plan: Sequence[tuple[str, int]], report: Report = lambda _: None) -> None:
        """Send the inputs by a few clients at once; stops early if far too much is wrong."""
        for start in range(0, len(plan), TIDY_EVERY):
            with ThreadPoolExecutor(CLIENTS) as clients:
                list(clients.map(lambda each: self.send(*each), plan[start : start + TIDY_EVERY]))
            self.read_log()
            furnish(self.server, self.scene)
            report(min(start + TIDY_EVERY, len(plan)))
            if len(self.tally.faults) >= MOST_FAULTS or self.server.process.poll() is not None:
                break

    def send(self, kind: str, seed: int) -> str:
        """Send one input, and note its answer and what is wrong with it; returns the answer in a word."""
        if len(self.tally.faults) >= MOST_FAULTS:
            return "left out"
        name = f"{kind}-{seed}"
        scene = replace(self.scene, headers=self.scene.headers | {"X-Request-ID": name})
        request = draw_input(kind, seed, scene)
        word, fault = self.import_archive(request) if kind == "archives" else self.send_request(request)
        self.tally.answers[kind, word] += 1
        if fault:
            self.tally.faults.append(f"{kind}:{seed} {fault}")
        return word

    def send_request(self, request: Request) -> tuple[str, str | None]:
        """The answer to a request in a word, and what is wrong with it."""
        patience = PATIENCE if request.whole else SHORT_PATIENCE
        method = request.content.partition(b" ")[0].decode("latin-1")
        try:
            answer = exchange(self.server.address, request.content, seconds=patience, method=method)
        except OSError as error:
            return "refused", f"no connection: {error}"
        return describe(answer), judge(request, answer)

    def import_archive(self, request: Request) -> tuple[str, str | None]:
        """Import an archive beside the running server, look at it over HTTP, and delete it."""
        with self._importing:
            path = self.ground.folder / "hostile.gz"
            path.write_bytes(request.content)
            try:
                with closing(Store(self.ground.data / "gallery.db")) as store:
                    import_collection(store, path, "imported")
            except SamefaceError as refusal:
                return refusal.code, None
            except Exception as error:
                return "raised", f"import raises {type(error).__name__}: {error}"
            with self.server.client() as client:
                seen = [
                    client.get("/v1/collections/imported/people").status_code,
                    client.post(
                        "/v1/collections/imported/identify", json={"embedding": self.scene.embedding}
                    ).status_code,
                    client.delete("/v1/collections/imported").status_code,
                ]
        return "imported", f"then {seen}" if max(seen) >= 500 else None

    def read_log(self) -> None:
        """Note the errors that the server has logged since this was last called."""
        with self.server.log_file.open("rb") as log:
            log.seek(self._log_read)
            new = log.read()
        self._log_read += len(new)
        self.tally.faults += [f"the log: {line}" for line in find_faults(new.decode("utf-8", "replace"))]


def describe(answer: Answer) -> str:
    """An answer in a word."""
    return str(answer.status) if answer.status else "cut" if answer.cut else "none"


def judge(request: Request, answer: Answer) -> str | None:
    """What is wrong with an answer."""
    if answer.status is None:
        small = len(request.content) < SMALL_BODY
        return "has no answer" if request.whole and (small or not answer.cut) else None
    if answer.status >= 500 and answer.status != 503:
        return f"is {answer.status}: {answer.body[:300]!r}"
    if b'"code": "internal"' in answer.body or b'"code":"internal"' in answer.body:
        return f"is an internal error: {answer.body[-300:]!r}"
    return None


def wait_and_measure(server: Server) -> float:
    """The memory of a server that has had the time to return what it does not use."""
    time.sleep(REST_SECONDS)
    return server.megabytes


def show_answers(tally: Tally) -> str:
    """The answers as a table of kinds and statuses."""
    words = sorted({word for _, word in tally.answers})
    lines = [f"| kind | {' | '.join(words)} |", "|---" * (len(words) + 1) + "|"]
    for kind in KINDS:
        counts = (f"{tally.answers[kind, word]:,}" if tally.answers[kind, word] else "" for word in words)
        lines.append(f"| {kind} | {' | '.join(counts)} |")
    return "\n".join(lines)


def write_input(kind: str, seed: int, scene: Scene, path: Path) -> None:
    """Keep an input as a file, to look at it."""
    path.write_bytes(draw_input(kind, seed, scene).content)
