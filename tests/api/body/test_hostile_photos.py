"""Photos that are made to cost: refused before they are decoded."""

import io

import httpx
import pytest
from PIL import Image

from tests.api.problems import expect
from tests.attack.crafted_photos import add_scans, draw_line
from tests.pictures import draw_photo, encode


def test_a_jpeg_of_many_scans_is_refused_and_an_ordinary_one_is_not(client: httpx.Client) -> None:
    progressive = encode(draw_photo(1), "JPEG", progressive=True, quality=90)
    assert client.post("/v1/detect", files={"image": progressive}).status_code == 200
    bomb = add_scans(progressive, 20_000)
    assert len(bomb) < 10_000_000
    answer = expect(client.post("/v1/detect", files={"image": bomb}), 413, "image_too_large")
    assert answer["limit"] == 100


@pytest.mark.parametrize(("width", "height"), [(1, 50_000_000), (40_000_000, 1), (10, 2_000)])
def test_sides_that_no_camera_makes_are_refused(client: httpx.Client, width: int, height: int) -> None:
    expect(client.post("/v1/detect", files={"image": draw_line(width, height)}), 413, "image_too_large")


def test_a_panorama_is_a_photo(client: httpx.Client) -> None:
    panorama = io.BytesIO()
    Image.new("RGB", (3000, 200)).save(panorama, "JPEG")
    assert client.post("/v1/detect", files={"image": panorama.getvalue()}).status_code == 200
