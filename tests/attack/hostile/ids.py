"""Ids in addresses: dots, slashes, encodings, Unicode, lengths, and queries beside them."""

from random import Random
from urllib.parse import quote

from tests.attack.exchange import write_request
from tests.attack.hostile.request import Request, Scene, draw_text

IDS = [
    ".",
    "..",
    "...",
    "./x",
    "../x",
    "..%2fx",
    "%2e",
    "%2e%2e",
    "%2e%2e%2f",
    "%252e%252e",
    "%00",
    "a%00b",
    "%0a",
    "a%0d%0ab",
    "%2f",
    "/",
    "//",
    "/..",
    "x/",
    ";a=b",
    "a;b",
    "a:b",
    "a@b",
    "%ff",
    "%c0%ae",
    "%ed%a0%80",
    "%f0%9f%98%80",
    "%25",
    "%",
    "%zz",
    "%u0041",
    "~",
    "-",
    "_",
    "-rf",
    "'",
    "'--",
    '"',
    "*",
    "?",
    "%3f",
    "#",
    "%23",
    "[a]",
    "{a}",
    "<a>",
    "a\\b",
    "%5c%5c",
    "CON",
    "nul",
    "batch",
    "people",
    "faces",
    "identify",
    "null",
    "undefined",
    "0",
    "-1",
    "1e9",
    "true",
]
ROUTES = (
    "/v1/collections/{}",
    "/v1/collections/{}/people",
    "/v1/collections/{staff}/people/{}",
    "/v1/collections/{staff}/people/{}/faces",
    "/v1/collections/{staff}/people/{}/faces/{}",
    "/v1/collections/{}/identify",
    "/v1/collections/{}/identify/batch",
    "/v1/collections/{staff}/people/{}/{}",
    "/v1/{}",
    "/{}",
)
METHODS = ("GET", "GET", "DELETE", "PUT", "POST", "PATCH", "HEAD", "OPTIONS")
NUMBERS = ("0", "-1", "1", "1001", "1e3", "NaN", "٣", "9" * 40, "", "%00", "null", "1;2", "0x10", " 5")


def draw(random: Random, scene: Scene) -> Request:
    """A request whose address has ids that are none, or odd ones."""
    path = random.choice(ROUTES).replace("{staff}", scene.collection)
    while "{}" in path:
        path = path.replace("{}", draw_id(random), 1)
    if random.random() < 0.3:
        path += draw_query(random)
    method = random.choice(METHODS)
    headers = dict(scene.headers)
    if random.random() < 0.1:
        headers["Idempotency-Key"] = draw_text(random, "ab\té漢", 300)
    body = b"{}" if method in ("PUT", "POST", "PATCH") and random.random() < 0.7 else None
    if body:
        headers["Content-Type"] = "application/json"
    return Request(write_request(method, path, headers, body), whole=is_plain(path, headers))


def is_plain(path: str, headers: dict[str, str]) -> bool:
    """Whether the request can be parsed, so that there is an answer to wait for."""
    text = path + headers.get("Idempotency-Key", "")
    return text.isascii() and text.isprintable() and " " not in path


def draw_id(random: Random) -> str:
    """An id, encoded or not."""
    kind = random.random()
    if kind < 0.6:
        return random.choice(IDS)
    if kind < 0.75:
        return "x" * random.choice((1, 127, 128, 129, 255, 5_000))
    drawn = draw_text(random, "aZ0._~-/ é漢😀\0\n%", 20)
    return quote(drawn, safe="") if random.random() < 0.8 else drawn.replace("\n", "").replace("\0", "")


def draw_query(random: Random) -> str:
    """A query with odd values, names and repetitions."""
    names = ("limit", "cursor", "faces", "min_quality", "fusion", "threshold", "target_fpir", "x", "")
    pairs = [
        f"{random.choice(names)}={random.choice(NUMBERS) if random.random() < 0.6 else draw_id(random)}"
        for _ in range(random.randint(0, 4))
    ]
    return "?" + random.choice(("&", ";", "&&")).join(pairs)
