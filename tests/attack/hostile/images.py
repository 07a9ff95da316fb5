"""Photos that are damaged, cut, crafted, or none at all."""

import base64
import json
import struct
import zlib
from random import Random

from tests.attack.crafted_photos import PICTURES, draw_line, flat_png, flat_webp, scan_bomb
from tests.attack.hostile.request import Request, Scene, mutate, post

EDGE = "edge"
SIGNATURES = (
    b"\xff\xd8\xff",
    b"\x89PNG\r\n\x1a\n",
    b"RIFF\x10\0\0\0WEBP",
    b"BM",
    b"GIF89a",
    b"%PDF-",
    b"II*\0",
)


def draw(random: Random, scene: Scene) -> Request:
    """A hostile photo, for one of the routes that take photos, as a form or as JSON."""
    photo = draw_photo(random, scene)
    path, fields, others = random.choice(
        (
            ("/v1/detect", ["image"], {}),
            ("/v1/embed", ["image"], {}),
            ("/v1/verify", ["probe", "reference"], {}),
            (f"{scene.address}/identify", ["image"], {}),
            (f"{scene.address}/people", ["images"], {"person_id": f"i{random.randrange(100)}"}),
            (f"{scene.address}/people/i1/faces", ["images"], {}),
        )
    )
    if random.random() < 0.8:
        return post(scene, path, f"multipart/form-data; boundary={EDGE}", write_form(fields, photo, others))
    sent = {"base64": base64.b64encode(photo).decode()}
    body = {field: [sent] if field == "images" else sent for field in fields} | others
    return post(scene, path, "application/json", json.dumps(body).encode())


def write_form(fields: list[str], photo: bytes, others: dict[str, str]) -> bytes:
    """A form with the photo in each of these fields, and other fields."""
    part = b'--edge\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    parts = [part % (name.encode(), b'; filename="a.jpg"', photo) for name in fields]
    parts += [part % (name.encode(), b"", value.encode()) for name, value in others.items()]
    return b"".join(parts) + b"--edge--\r\n"


def draw_photo(random: Random, scene: Scene) -> bytes:
    """Bytes that may be taken for a photo."""
    kind = random.random()
    if kind < 0.55:
        return mutate(random, random.choice(PICTURES))
    if kind < 0.65:
        return mutate(random, random.choice(scene.photos))
    if kind < 0.72:
        return random.choice(SIGNATURES) + random.randbytes(random.choice((0, 10, 300, 5_000)))
    if kind < 0.995:
        return random.choice((draw_sides, draw_scans, draw_chunks, draw_small_bomb))(random)
    return draw_bomb(random)


def draw_sides(random: Random) -> bytes:
    """A PNG that claims sides which it does not have."""
    sides = (0, 1, 10, 1_001, 65_536, 50_000_000, 2**31 - 1)
    width, height = random.choice(sides), random.choice(sides)
    row = min(width, 1_000_000)
    claimed = bytearray(draw_line(row, height))
    header = b"IHDR" + struct.pack(">II", width, height) + bytes(claimed[24:29])
    claimed[12:29] = header
    claimed[29:33] = struct.pack(">I", zlib.crc32(header))
    return bytes(claimed)


def draw_scans(random: Random) -> bytes:
    """A progressive JPEG of more or less too many scans, now and then damaged."""
    jpeg = scan_bomb(random.choice((1, 20, 89, 95, 200, 5_000)))
    return mutate(random, jpeg) if random.random() < 0.5 else jpeg


def draw_chunks(random: Random) -> bytes:
    """A PNG with chunks that nobody expects."""
    picture = PICTURES[2]
    chunks = b""
    for _ in range(random.randint(1, 5)):
        kind = random.choice(
            (b"iCCP", b"eXIf", b"tRNS", b"PLTE", b"acTL", b"fcTL", b"zTXt", b"IHDR", b"IDAT")
        )
        data = random.choice((b"", random.randbytes(40), b"a\0\0" + zlib.compress(bytes(3_000_000))))
        chunks += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return picture[:33] + chunks + picture[33:]


def draw_small_bomb(random: Random) -> bytes:
    """A picture of one colour, of a few megapixels."""
    return random.choice((flat_png, flat_webp))(random.choice((500, 500, 1_000, 2_000)))


def draw_bomb(random: Random) -> bytes:
    """A picture of as many pixels as are decoded, or somewhat more."""
    return random.choice((flat_webp(), flat_png(), draw_line(10_000, 5_001), draw_line(1, 50_000_000)))
