"""The kinds of hostile inputs, and their shares."""

from collections.abc import Callable
from random import Random

from tests.attack.hostile import archives, forms, headers, ids, images, json_bodies, lines
from tests.attack.hostile.request import Request, Scene

Draw = Callable[[Random, Scene], Request]

KINDS: dict[str, tuple[float, Draw]] = {
    "images": (0.24, images.draw),
    "forms": (0.10, forms.draw),
    "json": (0.20, json_bodies.draw),
    "lines": (0.15, lines.draw),
    "headers": (0.15, headers.draw),
    "ids": (0.15, ids.draw),
    "archives": (0.01, archives.draw),
}


def draw_input(kind: str, seed: int, scene: Scene) -> Request:
    """The input of a kind with this seed: always the same one."""
    _, draw = KINDS[kind]
    return draw(Random(f"{kind}:{seed}"), scene)


def plan_inputs(count: int, seed: int) -> list[tuple[str, int]]:
    """About `count` inputs of all kinds by their shares, shuffled."""
    plan = [
        (kind, seed * 10_000_000 + number)
        for kind, (share, _) in KINDS.items()
        for number in range(round(share * count))
    ]
    Random(seed).shuffle(plan)
    return plan
