"""A photo that cannot be used gets the documented problem, before it costs memory."""

import base64
import io
import struct
import zlib

import httpx
import pytest

from tests.api.body.memory import peak_megabytes
from tests.api.problems import expect
from tests.attack.crafted_photos import gif_of_comments, tiff_of_a_tile
from tests.pictures import draw_photo, draw_speck, encode, photo_of


def huge_png(side: int = 30_000) -> bytes:
    """A PNG that claims 900 million pixels in 100 kB."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(100_000_000))[:100_000]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def truncated_jpeg() -> bytes:
    whole = encode(draw_photo(1, noise=1), "JPEG")
    return whole[: len(whole) // 2]


def as_format(file_format: str) -> bytes:
    return encode(draw_photo(1), file_format)


def base64_of(photo: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(photo).decode()}


PHOTOS = {
    "empty": (b"", 400, "unreadable_image"),
    "truncated jpeg": (truncated_jpeg(), 400, "unreadable_image"),
    "truncated png": (photo_of(1)[:200], 400, "unreadable_image"),
    "text named .jpg": (b"this is no picture", 415, "unsupported_image"),
    "svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', 415, "unsupported_image"),
    "a TIFF of a huge tile": (tiff_of_a_tile(), 413, "image_too_large"),
    "a GIF of comments": (gif_of_comments(), 413, "image_too_large"),
    "900 million pixels": (huge_png(), 413, "image_too_large"),
    "nobody in it": (photo_of(), 422, "no_face_found"),
    "a face of twelve pixels": (encode(draw_speck()), 422, "face_too_small"),
}


@pytest.mark.parametrize(("photo", "status", "code"), PHOTOS.values(), ids=PHOTOS.keys())
@pytest.mark.parametrize("side", ["probe", "reference"])
def test_a_photo_that_cannot_be_verified(
    client: httpx.Client, side: str, photo: bytes, status: int, code: str
) -> None:
    photos = {"probe": photo_of(1), "reference": photo_of(1)} | {side: photo}
    files = {name: (f"{name}.jpg", content) for name, content in photos.items()}
    problem = expect(client.post("/v1/verify", files=files), status, code)
    assert problem["image"] == side
    in_json = {name: base64_of(content) for name, content in photos.items()}
    assert expect(client.post("/v1/verify", json=in_json), status, code)["image"] == side


def test_a_huge_picture_is_refused_before_it_is_decoded(client: httpx.Client) -> None:
    photo = huge_png()
    before = peak_megabytes()
    for _ in range(5):
        problem = expect(client.post("/v1/detect", files={"image": photo}), 413, "image_too_large")
        assert problem["limit"] == 50_000_000
    assert peak_megabytes() - before < 40


def test_too_many_images(client: httpx.Client) -> None:
    files = [(f"image{number}", photo_of(1)) for number in range(17)]
    assert expect(client.post("/v1/detect", files=files), 413, "too_many_images")["limit"] == 16


def test_several_faces_where_only_one_is_allowed(client: httpx.Client) -> None:
    files = {"probe": photo_of(1, 2), "reference": photo_of(1)}
    problem = expect(
        client.post("/v1/verify", files=files, data={"faces": "only"}), 422, "several_faces_found"
    )
    assert problem["faces_found"] == 2


def test_a_face_below_the_quality_that_was_asked_for(client: httpx.Client) -> None:
    files = {"probe": photo_of(1), "reference": photo_of(1)}
    problem = expect(client.post("/v1/verify", files=files, data={"min_quality": 1}), 422, "low_quality_face")
    assert (problem["limit"], problem["issues"]) == (1, [])


def test_a_photo_sent_as_a_plain_form_field_is_a_photo(client: httpx.Client) -> None:
    photo = encode(draw_photo(1, noise=3))
    assert len(photo) > 64_000
    content = b'--edge\r\nContent-Disposition: form-data; name="image"\r\n\r\n' + photo + b"\r\n--edge--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    assert len(client.post("/v1/detect", content=content, headers=headers).json()["faces"]) == 1


def test_bytes_of_any_kind_are_a_file(client: httpx.Client) -> None:
    assert client.post("/v1/detect", files={"image": io.BytesIO(photo_of(1))}).status_code == 200


HINTS = {
    "a film": (b"\0\0\0\x18ftypisom\0\0\0\0isommp42", "send one picture of it"),
    "a data URL": (b"data:image/jpeg;base64,/9j/4AAQ", "send the bytes that it encodes"),
}


@pytest.mark.parametrize(("content", "hint"), HINTS.values(), ids=HINTS.keys())
def test_what_phones_and_browsers_send_is_refused_with_a_hint(
    client: httpx.Client, content: bytes, hint: str
) -> None:
    answer = client.post("/v1/detect", files={"image": content})
    assert hint in expect(answer, 415, "unsupported_image")["detail"]


def test_a_data_url_is_base64_too(client: httpx.Client) -> None:
    encoded = base64.b64encode(photo_of(1)).decode()
    for head in ("", "data:image/png;base64,", "data:;base64,"):
        answer = client.post("/v1/detect", json={"image": {"base64": head + encoded}})
        assert len(answer.json()["faces"]) == 1


@pytest.mark.parametrize(
    "url", ["data:image/png,abc", "data:image/png;base64", "data:image/png;base64,a b", "data:"]
)
def test_another_data_url_is_refused(client: httpx.Client, url: str) -> None:
    problem = expect(client.post("/v1/detect", json={"image": {"base64": url}}), 422, "invalid_request")
    assert "base64" in problem["detail"]


@pytest.mark.parametrize("file_format", ["GIF", "TIFF", "HEIF", "AVIF"])
def test_a_face_is_found_in_every_format(client: httpx.Client, file_format: str) -> None:
    photo = encode(draw_photo(1), file_format)
    assert len(client.post("/v1/detect", files={"image": photo}).json()["faces"]) == 1
