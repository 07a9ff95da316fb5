"""Multipart forms: boundaries, parts and their headers, as no browser writes them."""

from random import Random

from tests.attack.crafted_photos import PICTURES
from tests.attack.hostile.request import Request, Scene, mutate, post
from tests.attack.hostile.values import KEYS, draw_value

FIELDS = {
    "/v1/detect": ("image", "faces"),
    "/v1/embed": ("image", "encoding"),
    "/v1/verify": ("probe", "reference", "threshold"),
    "{staff}/people": ("images", "images", "person_id", "name", "metadata"),
    "{staff}/people/j1/faces": ("images", "min_quality"),
    "{staff}/identify": ("image", "limit", "fusion"),
}
HONEST = {
    "faces": "all",
    "encoding": "base64",
    "threshold": "0.4",
    "limit": "3",
    "fusion": "mean",
    "metadata": "{}",
}
DISPOSITIONS = (
    "form-data; name={}",
    "form-data; name*=utf-8''{}",
    'form-data; name="{}"; name="other"',
    'form-data; name="{}; filename="x',
    "form-data; name=\"{}\"; filename*=utf-8''%00",
    'attachment; filename="{}"',
    "form-data",
    "",
)
EXTRA_HEADERS = (
    "Content-Type: \0\r\n",
    "X: " + "y" * 9_000 + "\r\n",
    "Content-Transfer-Encoding: base64\r\n",
    "junk\r\n",
    "Content-Disposition: form-data\r\n",
)
EDGES = ("e" * 70, "e" * 256, "e" * 257, "e" * 3_000, "", "é", '"edge', "e;dge", "--", "\t")


def draw(random: Random, scene: Scene) -> Request:
    """A form for one of the routes that take one: most of it is right, something is not."""
    path, fields = random.choice(list(FIELDS.items()))
    names = list(fields)
    while random.random() < 0.3:
        names.insert(random.randrange(len(names) + 1), random.choice((*KEYS, "")))
    if random.random() < 0.03:
        names *= 40
    edge = "edge" if random.random() < 0.85 else random.choice(EDGES)
    body = b"".join(draw_part(random, edge, name) for name in names)
    ends = (f"--{edge}--\r\n",) * 9 + (f"--{edge}--", f"--{edge}", "", f"\r\n--{edge}--\r\nmore")
    body += random.choice(ends).encode()
    if random.random() < 0.15:
        body = mutate(random, body, 5)
    named = edge if random.random() < 0.95 else random.choice((f'"{edge}"', edge + "x", ""))
    kind = f"multipart/form-data; boundary={named}"
    return post(scene, path.replace("{staff}", scene.address), kind, body)


def draw_part(random: Random, edge: str, name: str) -> bytes:
    """A part with its headers."""
    disposition = 'form-data; name="{}"' if random.random() < 0.9 else random.choice(DISPOSITIONS)
    headers = f"Content-Disposition: {disposition.replace('{}', name)}\r\n"
    if random.random() < 0.05:
        headers += random.choice(EXTRA_HEADERS)
    return f"--{edge}\r\n{headers}\r\n".encode() + draw_content(random, name) + b"\r\n"


def draw_content(random: Random, name: str) -> bytes:
    """What a field holds: what it should, or another value."""
    kind = random.random()
    if kind < 0.03:
        return b"x" * random.choice((64_000, 64_001, 200_000))
    if kind < 0.25:
        return draw_value(random).encode("utf-8", "surrogatepass")
    if name in ("image", "images", "probe", "reference"):
        return random.choice(PICTURES)
    return HONEST.get(name, f"f{random.randrange(50)}").encode()
