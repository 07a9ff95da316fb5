"""JSON values, as text, that no field was made for."""

import json
from random import Random

from tests.attack.hostile.request import draw_text

ODD = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0",
    "1e999",
    "-1e999",
    "1e-999",
    "5e-324",
    "NaN",
    "Infinity",
    "-Infinity",
    "9007199254740993",
    "1.7976931348623157e308",
    "123456789012345678901234567890",
    '""',
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    '{"":{}}',
    '"\\u0000"',
]
BROKEN = [
    '"\\ud800"',
    '"\\udfff x"',
    '"\\ud83d"',
    '"\\u12"',
    '"\\x41"',
    "'single'",
    "undefined",
    "01",
    "1.",
    "+1",
]
TEXTS = [
    "..",
    ".",
    "../../etc/passwd",
    "' OR 1=1 --",
    "{{7*7}}",
    "<script>",
    "%s%n",
    "\u202e",
    "\ufeff",
    "😀" * 70,
]
KEYS = [
    "person_id",
    "name",
    "metadata",
    "images",
    "embeddings",
    "embedding",
    "image",
    "probe",
    "reference",
    "model",
    "faces",
    "limit",
    "fusion",
    "threshold",
    "target_fmr",
    "target_fpir",
    "extrapolate",
    "min_quality",
    "collection",
    "id",
    "store_crops",
    "calibration",
    "__proto__",
    "$ref",
]


def draw_value(random: Random) -> str:
    """A JSON value, valid or not."""
    return random.choice((draw_odd, draw_odd, draw_string, draw_nested, draw_long, draw_object))(random)


def draw_odd(random: Random) -> str:
    """A value that is odd by itself."""
    return random.choice(ODD if random.random() < 0.7 else BROKEN)


def draw_string(random: Random) -> str:
    """A text."""
    if random.random() < 0.5:
        return json.dumps(random.choice(TEXTS))
    return json.dumps(draw_text(random, 'ab"\\\n\0é漢\ud800', 300))


def draw_nested(random: Random) -> str:
    """Lists or objects in each other, now and then without their ends."""
    depth = random.choice((3, 50, 199, 201, 1_000, 20_000))
    opened, closed = random.choice((("[", "]"), ('{"a":', "}")))
    inner = "1" if random.random() < 0.5 else draw_odd(random)
    return opened * depth + inner + closed * (depth if random.random() < 0.9 else random.randint(0, depth))


def draw_long(random: Random) -> str:
    """A long list or text."""
    count = random.choice((100, 257, 4_097, 70_000))
    kind = random.randrange(4)
    if kind == 0:
        return json.dumps("x" * count)
    if kind == 1:
        return "[" + ",".join([draw_odd(random)] * count) + "]"
    if kind == 2:
        return "[" + ",".join(["0.5"] * count) + "]"
    return "{" + ",".join(f'"k{number}":1' for number in range(count)) + "}"


def draw_object(random: Random) -> str:
    """An object of known and unknown keys, some of them twice."""
    pairs = [f'"{random.choice(KEYS)}": {draw_odd(random)}' for _ in range(random.randint(1, 12))]
    return "{" + ", ".join(pairs) + "}"
