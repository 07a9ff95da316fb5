"""Archives of collections: damaged, cut, and whole ones with values that nobody exported."""

import gzip
import hashlib
import json
from random import Random

from tests.attack.hostile.request import Request, Scene, mutate
from tests.attack.hostile.values import draw_value

MOST_BYTES = 3_000_000  # of a value: more is another attack


def draw(random: Random, scene: Scene) -> Request:
    """An archive, most of them with the right checksum."""
    lines = [json.dumps(line) for line in scene.archive]
    for _ in range(random.randint(0, 3)):
        spoil(random, lines)
    content = "".join(f"{line}\n" for line in lines[:-1]).encode("utf-8", "surrogatepass")
    last = dict(scene.archive[-1]) | {"sha256": hashlib.sha256(content).hexdigest()}
    if random.random() < 0.1:
        last |= {random.choice(("people", "faces", "sha256", "x")): random.choice((0, 10**9, None, "x"))}
    packed = gzip.compress(content + json.dumps(last).encode() + b"\n", 1)
    kind = random.random()
    if kind < 0.3:
        packed = mutate(random, packed)
    elif kind < 0.35:
        packed += random.choice((packed, b"x", gzip.compress(bytes(10_000_000)), b"\0" * 100))
    return Request(packed)


def spoil(random: Random, lines: list[str]) -> None:
    """Change a line: a value of it, its place, or all of it."""
    place = random.randrange(len(lines) - 1)
    kind = random.random()
    if kind < 0.7:
        lines[place] = replace_value(random, lines[place])
    elif kind < 0.8:
        lines[place] = draw_value(random)
    elif kind < 0.9:
        lines.insert(place, lines[place])
    elif len(lines) > 2:
        del lines[place]


def replace_value(random: Random, line: str) -> str:
    """The line with another value for one of its keys, or of the first face's."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(found, dict) or not found:
        return line
    faces = found.get("faces")
    has_faces = isinstance(faces, list) and faces  # an earlier change may have put anything there
    part = faces[0] if has_faces and random.random() < 0.5 else found
    if not isinstance(part, dict) or not part:
        return line
    value = draw_value(random)[:MOST_BYTES]
    part[random.choice(list(part))] = "HERE"
    return json.dumps(found).replace('"HERE"', value, 1)
