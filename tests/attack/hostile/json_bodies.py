"""JSON bodies: wrong types, deep, huge, broken, with keys twice."""

import base64
import json
from random import Random

from tests.attack.crafted_photos import PICTURES
from tests.attack.hostile.request import Request, Scene, mutate, post
from tests.attack.hostile.values import KEYS, draw_value


def draw(random: Random, scene: Scene) -> Request:
    """A JSON body for one of the routes that take some, with something wrong in most."""
    method, path, fields = random.choice(list_bodies(random, scene))
    body = write_body(random, fields).encode("utf-8", "surrogatepass")
    kind = random.random()
    if kind < 0.15:
        body = mutate(random, body)
    elif kind < 0.2:
        body = random.choice(
            (b"\xef\xbb\xbf" + body, body.decode("utf-8", "replace").encode("utf-16"), b"", b"\xff")
        )
    content_type = random.choice(
        ("application/json",) * 8 + ("application/json; charset=utf-16", "text/plain")
    )
    return post(scene, path, content_type, body, method)


def list_bodies(random: Random, scene: Scene) -> list[tuple[str, str, dict[str, str]]]:
    """Method, path and the fields of an honest body, each as JSON, of every route that takes JSON."""
    embedding = json.dumps(scene.embedding)
    photo = json.dumps({"base64": base64.b64encode(PICTURES[0]).decode()})
    person = f"j{random.randrange(50)}"
    people, staff = f"{scene.address}/people", scene.address
    return [
        ("POST", people, {"person_id": f'"{person}"', "name": '"x"', "embeddings": f"[{embedding}]"}),
        (
            "POST",
            people,
            {"person_id": f'"{person}"', "metadata": '{"a": 1}', "embeddings": f"[{embedding}]"},
        ),
        ("POST", f"{people}/{person}/faces", {"embeddings": f"[{embedding}]"}),
        ("PATCH", f"{people}/{person}", {"name": '"y"', "metadata": '{"b": [1, null]}'}),
        ("POST", f"{staff}/identify", {"embedding": embedding, "limit": "3", "fusion": '"mean"'}),
        ("POST", f"{staff}/identify", {"embedding": embedding, "target_fpir": "0.01", "extrapolate": "true"}),
        ("POST", "/v1/verify", {"probe": photo, "reference": photo, "target_fmr": "0.001"}),
        (
            "POST",
            "/v1/verify",
            {"probe": photo, "collection": f'"{scene.collection}"', "person_id": f'"{person}"'},
        ),
        ("POST", "/v1/detect", {"image": photo, "faces": '"all"'}),
        ("POST", "/v1/embed", {"image": photo, "encoding": '"base64"'}),
        ("PUT", f"/v1/collections/j{random.randrange(10)}", {"store_crops": "true"}),
    ]


def write_body(random: Random, fields: dict[str, str]) -> str:
    """The fields as an object, some of them spoilt, doubled, left out or unheard of."""
    if random.random() < 0.08:
        return draw_value(random)
    pairs = list(fields.items())
    for _ in range(random.randint(0, 3)):
        place = random.randrange(len(pairs) + 1)
        kind = random.random()
        if kind < 0.6 and place < len(pairs):
            pairs[place] = (pairs[place][0], draw_value(random))
        elif kind < 0.75 and place < len(pairs):
            pairs.append((pairs[place][0], draw_value(random)))
        elif kind < 0.9:
            pairs.insert(place, (random.choice(KEYS), draw_value(random)))
        elif place < len(pairs):
            del pairs[place]
    return "{" + ", ".join(f'"{key}": {value}' for key, value in pairs) + "}"
