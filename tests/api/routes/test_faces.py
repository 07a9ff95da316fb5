"""Detect and embed, as a client sees them."""

import base64

import httpx
import numpy as np
import pytest

from tests.networks import DIMENSION
from tests.pictures import draw_photo, encode, photo_of


def test_detect_finds_every_face_most_prominent_first(client: httpx.Client) -> None:
    answer = client.post("/v1/detect", files={"image": photo_of(1, 2, 3)}).json()
    assert answer["faces_found"] == 3
    assert [face["box"]["left"] for face in answer["faces"]] == [128, 208, 48]


def test_a_photo_without_a_face_has_an_empty_list(client: httpx.Client) -> None:
    for route in ("/v1/detect", "/v1/embed"):
        response = client.post(route, files={"image": photo_of()})
        assert (response.status_code, response.json()["faces"]) == (200, [])


@pytest.mark.parametrize("policy", ["prominent", "largest"])
def test_one_face_is_answered_where_one_is_asked_for(client: httpx.Client, policy: str) -> None:
    answer = client.post("/v1/detect", files={"image": photo_of(1, 2)}, data={"faces": policy}).json()
    assert (len(answer["faces"]), answer["faces_found"]) == (1, 2)


def test_more_faces_than_the_limit_are_counted_and_left_out(serve) -> None:
    with serve(max_faces=2) as client:
        answer = client.post("/v1/detect", files={"image": photo_of(1, 2, 3)}).json()
    assert (len(answer["faces"]), answer["faces_found"]) == (2, 3)


def test_embeddings_have_unit_length_and_both_encodings_agree(client: httpx.Client) -> None:
    files = {"image": photo_of(1, 2)}
    in_floats = client.post("/v1/embed", files=files).json()
    in_base64 = client.post("/v1/embed", files=files, data={"encoding": "base64"}).json()
    assert in_floats["model"] == "tiny-recogniser"
    for one, other in zip(in_floats["faces"], in_base64["faces"], strict=True):
        decoded = np.frombuffer(base64.b64decode(other["embedding"]), "<f4")
        assert decoded.shape == (DIMENSION,)
        assert np.linalg.norm(decoded) == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose(one["embedding"], decoded, atol=1e-7)


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "BMP"])
def test_every_supported_format_shows_the_same_face(client: httpx.Client, file_format: str) -> None:
    options = {"quality": 95} if file_format in ("JPEG", "WEBP") else {}
    photo = encode(draw_photo(1), file_format, **options)
    answer = client.post("/v1/verify", files={"probe": photo, "reference": photo_of(1)}).json()
    assert answer["similarity"] > 0.9
