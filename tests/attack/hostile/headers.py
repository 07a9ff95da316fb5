"""Raw shapes of HTTP: request lines, headers, lengths and chunks that no library would send."""

from random import Random

from tests.attack.hostile.request import Request, Scene, mutate

METHODS = (
    b"GET",
    b"POST",
    b"HEAD",
    b"OPTIONS",
    b"DELETE",
    b"PUT",
    b"PATCH",
    b"TRACE",
    b"CONNECT",
    b"PRI",
    b"get",
    b"G\0T",
    b"",
)
TARGETS = (
    b"/health/live",
    b"/v1/detect",
    b"/v1/collections",
    b"*",
    b"localhost:80",
    b"http://evil.example/v1/models",
    b"//evil.example/v1/models",
    b"/health/live?" + b"q" * 70_000,
    b"/" + b"a" * 9_000,
    b"/\xff\xfe",
    b"/v1/models#x",
    b"/v1/ models",
    b"?",
    b"",
)
VERSIONS = (b"HTTP/1.1",) * 8 + (
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/1.10",
    b"http/1.1",
    b"",
    b"HTTP/1.1 ",
    b"JUNK",
)
LENGTHS = (
    b"0",
    b"5",
    b"-1",
    b"+5",
    b"5, 5",
    b"5, 6",
    b"0x5",
    b"5 5",
    b"9" * 30,
    b"1000000000000",
    b"",
    b"\t5",
    b"5.0",
    b"NaN",
)
ENCODINGS = (
    b"chunked",
    b"Chunked",
    b" chunked",
    b"chunked, identity",
    b"gzip, chunked",
    b"chunked\x0b",
    b"xchunked",
    b"identity",
    b"",
)
CHUNKS = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;x=y\r\nhello\r\n0\r\n\r\n",
    b"5;" + b"x" * 20_000 + b"\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n",
    b"ffffffffffffffff\r\nhello",
    b"fffffffffffffffff\r\nhello",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5\r\nhelloXX0\r\n\r\n",
    b"0\r\nX-Trailer: y\r\n\r\n",
    b"0\r\n" + b"T: y\r\n" * 300 + b"\r\n",
    b"1\r\nx\r\n" * 300,
    b"\r\n",
    b"zz\r\n",
)
SMUGGLED = b"GET /v1/collections HTTP/1.1\r\nHost: localhost\r\n\r\n"
ODD_HEADERS = (
    b"Host: evil.example",
    b"Host: ",
    b"Host: a b",
    b"Folded: one\r\n two\r\n\tthree",
    b" Folded-first: x",
    b"No-Colon",
    b": no name",
    b"Space : x",
    b"Nul: a\0b",
    b"Bare: a\rb",
    b"Latin: \xe9\xff",
    b"Long: " + b"y" * 70_000,
    b"Expect: 100-continue",
    b"Expect: 200-maybe",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
    b"Connection: close",
    b"Connection: keep-alive, close, x",
    b"Authorization: Bearer " + b"x" * 5_000,
    b"Authorization: Bearer \xff\xfe",
    b"Authorization: Basic ====",
    b"Authorization:",
    b"X-Request-ID: " + b"i" * 200,
    b"X-Request-ID: a\tb",
    b"Idempotency-Key: " + b"k" * 300,
    b"Origin: null",
    b"Origin: https://[::1",
    b"Content-Type: multipart/form-data",
    b'Content-Type: multipart/form-data; boundary="',
    b"Content-Type: application/json; charset=\xff",
    b"Accept-Encoding: gzip;q=NaN",
    b"Range: bytes=0-",
    b"Transfer-Encoding : chunked",
)


def draw(random: Random, scene: Scene) -> Request:
    """A request by hand: most of it is right, something is not."""
    target = random.choice(TARGETS if random.random() < 0.2 else TARGETS[:3])
    method = random.choice(METHODS if random.random() < 0.1 else METHODS[:5])
    version = random.choice(VERSIONS if random.random() < 0.1 else VERSIONS[:1])
    line = b" ".join((method, target, version))
    headers = [b"Host: localhost"] if random.random() < 0.9 else []
    if random.random() < 0.5:
        headers.append(f"Authorization: {scene.headers['Authorization']}".encode())
    headers += random.choices(ODD_HEADERS, k=random.choice((0, 0, 1, 1, 2, 3)))
    if random.random() < 0.03:
        headers += [b"X-%d: y" % number for number in range(random.choice((95, 101, 5_000)))]
    framing, body = draw_body(random)
    random.shuffle(headers)
    end = b"\r\n" if random.random() < 0.96 else random.choice((b"\n", b"\r", b"\n\r"))
    content = end.join([line, *headers, *framing, b"", b""]) + body
    if random.random() < 0.05:
        content = mutate(random, content, 4)
    if random.random() < 0.1:
        content += SMUGGLED
    return Request(content, whole=False)


def draw_body(random: Random) -> tuple[list[bytes], bytes]:
    """Headers that say how long the body is, truly or not, perhaps twice, and a body."""
    kind = random.random()
    if kind < 0.35:
        return [], b""
    content = random.choice((b"hello", b"{}", SMUGGLED))
    json = [b"Content-Type: application/json"]
    if kind < 0.5:
        return [b"Content-Length: %d" % len(content), *json], content
    if kind < 0.7:
        return [b"Transfer-Encoding: chunked", *json], random.choice(CHUNKS)
    lengths = [b"Content-Length: " + random.choice(LENGTHS) for _ in range(random.randint(0, 2))]
    encodings = [b"Transfer-Encoding: " + random.choice(ENCODINGS) for _ in range(random.randint(0, 2))]
    return [*lengths, *encodings], random.choice((b"", content, random.choice(CHUNKS) + SMUGGLED))
