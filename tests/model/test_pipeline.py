"""The path of a photo: what is decoded how finely, and that it makes no difference."""

import asyncio

import numpy as np
import pytest
from PIL import Image

from sameface.model import pipeline as path
from sameface.model.photo.image import ImageLimits, decode_coarsely
from sameface.model.pipeline import Pipeline
from tests.pictures import draw_photo, encode


def enlarge(image: Image.Image, factor: int) -> Image.Image:
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


@pytest.mark.parametrize(
    ("width", "scale"), [(320, 1), (1279, 1), (1280, 2), (2559, 2), (2560, 4), (8000, 8)]
)
def test_a_jpeg_is_decoded_as_coarsely_as_detection_allows(width: int, scale: int) -> None:
    photo = encode(Image.new("RGB", (width, 192), (200, 30, 30)), "JPEG")
    image, found = decode_coarsely(photo, ImageLimits(), 640)
    assert found == scale
    assert image.shape == (-(-192 // scale), -(-width // scale), 3)


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "BMP"])
def test_other_formats_are_decoded_in_full(file_format: str) -> None:
    photo = encode(Image.new("RGB", (2560, 64)), file_format)
    image, scale = decode_coarsely(photo, ImageLimits(), 640)
    assert (image.shape, scale) == ((64, 2560, 3), 1)


def test_a_turned_jpeg_is_coarse_and_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    photo = encode(Image.new("RGB", (2560, 64)), "JPEG", exif=exif.tobytes())
    image, scale = decode_coarsely(photo, ImageLimits(), 640)
    assert (image.shape, scale) == ((640, 16, 3), 4)


def test_a_large_photo_gives_the_face_of_the_small_one_in_its_own_pixels(pipeline: Pipeline) -> None:
    small = draw_photo(1, width=640, height=480)
    options = {"quality": 95, "subsampling": 0}
    [face] = pipeline.embed_faces(encode(small, "JPEG", **options), "all").faces
    [large] = pipeline.embed_faces(encode(enlarge(small, 4), "JPEG", **options), "all").faces
    assert (large.box.left, large.box.width) == (face.box.left * 4, face.box.width * 4)
    assert np.allclose(large.landmarks, np.array(face.landmarks) * 4)
    assert large.embedding.values @ face.embedding.values > 0.98
    assert large.quality.size == face.quality.size * 4


def test_a_small_face_of_a_large_photo_is_cut_from_all_its_pixels(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 48 pixels in the coarse image, which a crop of 112 would have to enlarge."""
    decoded = []
    monkeypatch.setattr(path, "decode_pixels", lambda *given: decoded.append(1) or original(*given))
    large = encode(enlarge(draw_photo(1, width=640, height=480), 4), "JPEG")
    pipeline.find_faces(large, "all")
    assert decoded == [1]
    pipeline.find_faces(encode(draw_photo(1, width=640, height=480), "JPEG"), "all")
    assert decoded == [1]


original = path.decode_pixels


def test_a_face_that_is_large_enough_is_cut_from_the_coarse_image(
    real_pipeline: Pipeline, real_data, monkeypatch: pytest.MonkeyPatch
) -> None:
    portrait = Image.open(real_data.demo / "obama.jpg")
    large = encode(portrait.resize((portrait.width * 3, portrait.height * 3)), "JPEG", quality=92)
    [expected] = real_pipeline.embed_faces((real_data.demo / "obama.jpg").read_bytes(), "prominent").faces
    monkeypatch.setattr(path, "decode_pixels", lambda *_: pytest.fail("decoded in full"))
    embedded = asyncio.run(real_pipeline.embed(large, "prominent"))
    assert embedded.faces[0].embedding @ expected.embedding.values > 0.97
    assert embedded.faces[0].box.width == pytest.approx(3 * expected.box.width, rel=0.05)
