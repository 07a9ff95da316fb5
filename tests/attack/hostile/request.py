"""One hostile input, and what its author knows of the server."""

from dataclasses import dataclass
from random import Random

from tests.attack.exchange import write_request


@dataclass(frozen=True, slots=True)
class Scene:
    """What an attacker with a key knows: the names, an embedding, some photos, and an exported archive."""

    headers: dict[str, str]  # the key, and the name of the input, by which the server's log knows it
    collection: str
    embedding: tuple[float, ...]
    photos: tuple[bytes, ...]
    archive: tuple[dict, ...]  # its lines

    @property
    def address(self) -> str:
        """The address of the collection."""
        return f"/v1/collections/{self.collection}"


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes for a server; if they are no whole request, no answer is an answer too."""

    content: bytes
    whole: bool = True


def post(scene: Scene, path: str, content_type: str, body: bytes, method: str = "POST") -> Request:
    """A whole request with a body."""
    return Request(write_request(method, path, scene.headers | {"Content-Type": content_type}, body))


def mutate(random: Random, content: bytes, most: int = 12) -> bytes:
    """The content with some bytes changed, cut out, doubled or cut off."""
    changed = bytearray(content)
    reach = len(changed) if random.random() < 0.7 else min(100, len(changed))
    for _ in range(random.randint(1, most)):
        place = random.randrange(max(1, reach))
        kind = random.random()
        if kind < 0.6:
            changed[place : place + 1] = bytes([random.randrange(256)])
        elif kind < 0.8:
            del changed[place : place + random.randint(1, 20)]
        else:
            changed[place:place] = changed[place : place + random.randint(1, 40)]
    if random.random() < 0.2:
        del changed[random.randrange(len(changed) + 1) :]
    return bytes(changed)


def draw_text(random: Random, alphabet: str, most: int) -> str:
    """A text of up to so many characters."""
    return "".join(random.choices(alphabet, k=random.randint(0, most)))
