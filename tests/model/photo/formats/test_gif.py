"""A GIF costs its first frame, however many others and comments it has."""

import pytest
from PIL import Image

from sameface.model.errors import ImageTooLarge, SamefaceError, UnreadableImage
from sameface.model.photo.image import ImageLimits, decode_image
from tests.attack.crafted_photos import gif_beyond_its_screen, gif_of_comments, gif_of_frames
from tests.pictures import draw_photo, encode

LIMITS = ImageLimits()


def test_the_first_frame_is_read() -> None:
    frames = [Image.new("RGB", (32, 32), colour) for colour in ((200, 0, 0), (0, 200, 0))]
    photo = encode(
        frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0, comment=b"hi"
    )
    assert decode_image(photo, LIMITS).getpixel((5, 5)) == (200, 0, 0)


def test_transparency_is_white() -> None:
    assert decode_image(encode(Image.new("RGBA", (8, 8)), "GIF"), LIMITS).getpixel((0, 0)) == (255, 255, 255)


def test_a_hundred_thousand_frames_cost_one() -> None:
    photo = gif_of_frames(100_000)
    assert len(photo) > 4_000_000
    assert decode_image(photo, LIMITS).getpixel((0, 0)) == (200, 200, 200)


@pytest.mark.parametrize("make", [gif_of_comments, lambda: gif_beyond_its_screen(60_000)])
def test_what_costs_more_than_a_frame_is_refused(make: object) -> None:
    with pytest.raises(ImageTooLarge):
        decode_image(make(), LIMITS)


def test_a_frame_beyond_its_screen_counts_with_its_own_pixels() -> None:
    with pytest.raises(ImageTooLarge, match="700 x 16"):
        decode_image(gif_beyond_its_screen(700), ImageLimits(max_pixels=1000))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 0.9])
def test_a_gif_that_is_cut_is_unreadable(share: float) -> None:
    photo = encode(draw_photo(1), "GIF")
    with pytest.raises(SamefaceError) as refusal:
        decode_image(photo[: max(6, int(len(photo) * share))], LIMITS)
    assert isinstance(refusal.value, UnreadableImage)
