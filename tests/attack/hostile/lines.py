"""Batches: lines of NDJSON and streams of photos, cut anywhere."""

import base64
import json
from random import Random

from tests.attack.crafted_photos import PICTURES
from tests.attack.exchange import write_request
from tests.attack.hostile.json_bodies import write_body
from tests.attack.hostile.request import Request, Scene, mutate
from tests.attack.hostile.values import draw_value

NDJSON = "application/x-ndjson"
QUERIES = (
    "",
    "?limit=1",
    "?limit=0",
    "?target_fpir=5e-324",
    "?fusion=x",
    "?faces=only",
    "?unknown=1",
    "?limit=%00",
)


def draw(random: Random, scene: Scene) -> Request:
    """A batch of either kind, whole or cut off, in one piece or in many."""
    route = random.choice(("identify", "people"))
    path = f"{scene.address}/{route}/batch{random.choice(QUERIES) if random.random() < 0.2 else ''}"
    content_type, body = draw_lines(random, scene, route) if random.random() < 0.8 else draw_photos(random)
    headers = scene.headers | {"Content-Type": content_type}
    if random.random() < 0.2:
        headers["Idempotency-Key"] = f"k{random.randrange(20)}"
    if random.random() < 0.5:
        content = write_request("POST", path, headers, body)
    else:
        content = write_request("POST", path, headers | {"Transfer-Encoding": "chunked"}, cut(random, body))
    if random.random() < 0.15:
        return Request(content[: random.randrange(len(content))], whole=False)
    return Request(content)


def draw_lines(random: Random, scene: Scene, route: str) -> tuple[str, bytes]:
    """Lines, good ones among bad ones."""
    lines = [draw_line(random, scene, route) for _ in range(random.choice((1, 2, 5, 30)))]
    end = random.choice(("\n", "\n", "\n", "\r\n", "\n\n", "\r"))
    body = end.join(lines).encode("utf-8", "surrogatepass") + (b"\n" if random.random() < 0.5 else b"")
    if random.random() < 0.3:
        body = mutate(random, body)
    kinds = (NDJSON,) * 8 + ("application/jsonl", "application/json", "multipart/form-data", "")
    return random.choice(kinds), body


def draw_line(random: Random, scene: Scene, route: str) -> str:
    """One line."""
    kind = random.random()
    if kind < 0.1:
        return draw_value(random)
    if kind < 0.15:
        return random.choice(("", " ", "\t", "{", "}", "null", "[]", '{"id": "1"}', "\0", "\ufeff{}"))
    photo = json.dumps({"base64": base64.b64encode(random.choice(PICTURES)).decode()})
    fields = {"id": f'"{random.randrange(5)}"'}
    fields |= {"image": photo} if random.random() < 0.1 else {"embedding": json.dumps(scene.embedding)}
    if route == "people":
        fields["person_id"] = f'"l{random.randrange(100)}"'
    return json.dumps(None) if not fields else write_body(random, fields) if kind < 0.7 else join(fields)


def join(fields: dict[str, str]) -> str:
    """The fields as an object."""
    return "{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}"


def draw_photos(random: Random) -> tuple[str, bytes]:
    """A form of photos, some of them damaged."""
    part = b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n'
    parts = []
    for number in range(random.randint(0, 4)):
        photo = random.choice(PICTURES)
        name = b"images" if random.random() < 0.9 else random.choice((b"", b"image", b"x" * 9_000))
        parts.append(
            part % (name, b"f%d" % number, mutate(random, photo) if random.random() < 0.5 else photo)
        )
    body = b"".join(parts) + b"--edge--\r\n"
    return "multipart/form-data; boundary=edge", mutate(random, body, 3) if random.random() < 0.3 else body


def cut(random: Random, body: bytes) -> bytes:
    """The body in chunks of any size."""
    chunks = b""
    while body:
        length = min(len(body), random.choice((1, 3, 100, 5_000, 70_000)) if len(body) < 20_000 else 70_000)
        chunks += b"%x\r\n%s\r\n" % (length, body[:length])
        body = body[length:]
    return chunks + b"0\r\n\r\n"
