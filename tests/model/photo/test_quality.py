"""How fit a face is: the turn of a head whose turn is known, and one flaw at a time."""

import math

import numpy as np
import pytest
from PIL import Image, ImageFilter

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Box, DetectedFace, Pixels, Point, Quality
from sameface.model.photo.quality import NOSE_DEPTH, assess_quality, estimate_yaw

# Right, down and towards the viewer, in distances between the eyes: eyes, nose, mouth corners.
HEAD = np.array([(-0.5, 0, 0), (0.5, 0, 0), (0, 0.55, NOSE_DEPTH), (-0.4, 1.1, 0.1), (0.4, 1.1, 0.1)])


def photograph(yaw: float, roll: float = 0, pitch: float = 0, scale: float = 60) -> tuple[Point, ...]:
    """The head's landmarks in a photo from afar; positive yaw turns the nose to image-right."""
    yaw, roll, pitch = (math.radians(degrees) for degrees in (yaw, roll, pitch))
    x, y, z = HEAD.T
    y, z = y * math.cos(pitch) - z * math.sin(pitch), y * math.sin(pitch) + z * math.cos(pitch)
    x, z = x * math.cos(yaw) + z * math.sin(yaw), z * math.cos(yaw) - x * math.sin(yaw)
    x, y = x * math.cos(roll) - y * math.sin(roll), x * math.sin(roll) + y * math.cos(roll)
    return tuple((200 + scale * across, 150 + scale * down) for across, down in zip(x, y, strict=True))


def draw_crop(low: int = 40, high: int = 220) -> Pixels:
    """Patches of two grey levels with sharp edges."""
    patches = np.random.default_rng(5).integers(0, 2, (14, 14))
    grey = np.kron(patches, np.ones((8, 8))) * (high - low) + low
    return np.repeat(grey.astype(np.uint8)[..., np.newaxis], 3, axis=2)


def blur(crop: Pixels, radius: float) -> Pixels:
    return np.asarray(Image.fromarray(crop).filter(ImageFilter.GaussianBlur(radius)))


def assess(
    crop: Pixels | None = None, landmarks: tuple[Point, ...] = ARCFACE_TEMPLATE, side: float = 120
) -> Quality:
    """The quality of a face that is good but for what is given."""
    face = DetectedFace(Box(0, 0, side, side + 20), landmarks, 0.9)
    return assess_quality(face, draw_crop() if crop is None else crop)


@pytest.mark.parametrize("roll", [0, 30, -75, 180])
@pytest.mark.parametrize("yaw", [-60, -30, -5, 0, 20, 45, 70])
def test_the_turn_of_a_head_is_read_off_its_landmarks(yaw: float, roll: float) -> None:
    assert estimate_yaw(photograph(yaw, roll)) == pytest.approx(yaw, abs=0.1)


@pytest.mark.parametrize("pitch", [-20, 20])
@pytest.mark.parametrize("yaw", [-40, 40])
def test_a_nod_changes_the_turn_little(yaw: float, pitch: float) -> None:
    assert estimate_yaw(photograph(yaw, roll=15, pitch=pitch)) == pytest.approx(yaw, abs=15)


def test_the_turn_does_not_depend_on_the_size() -> None:
    assert estimate_yaw(photograph(35, scale=4)) == pytest.approx(estimate_yaw(photograph(35, scale=400)))


def test_eyes_on_one_point_are_a_profile() -> None:
    assert estimate_yaw(((5, 5), (5, 5), (9, 9), (5, 12), (6, 12))) == 90


def test_a_good_face_has_no_issues() -> None:
    quality = assess()
    assert quality.issues == ()
    assert quality.score == 1
    assert quality.size == 120
    assert abs(quality.yaw) < 3


def test_a_blurred_face_is_less_sharp() -> None:
    sharp, soft, softer = (assess(blur(draw_crop(), radius)) for radius in (0, 2, 6))
    assert sharp.sharpness > 2 * soft.sharpness > 2 * softer.sharpness
    assert softer.issues == ("blurred",)
    assert softer.score < 0.5


def test_a_heavier_blur_is_never_sharper() -> None:
    measured = [assess(blur(draw_crop(), radius)).sharpness for radius in (0, 1, 2, 4, 8, 16)]
    assert measured == sorted(measured, reverse=True)


@pytest.mark.parametrize("radius", [6, 8, 16])
@pytest.mark.parametrize("high", [220, 130])
def test_a_blur_is_named_in_bright_light_and_in_dim(radius: float, high: int) -> None:
    assert assess(blur(draw_crop(40, high), radius)).issues == ("blurred",)


def test_dim_light_is_not_blur() -> None:
    dim = assess(draw_crop(20, 110))
    assert dim.sharpness == pytest.approx(assess().sharpness, rel=0.1)
    assert "blurred" not in dim.issues


@pytest.mark.parametrize(
    ("crop", "issue"),
    [(draw_crop(2, 40), "dark"), (draw_crop(230, 255), "overexposed")],
    ids=["dark", "overexposed"],
)
def test_light_that_hides_the_face_is_named(crop: Pixels, issue: str) -> None:
    quality = assess(crop)
    assert quality.issues == (issue,)
    assert quality.score < 0.5
    assert quality.brightness == pytest.approx(crop.mean() / 255, abs=0.002)


@pytest.mark.parametrize("side", [10, 16, 30, 47])
def test_few_pixels_are_named(side: float) -> None:
    quality = assess(side=side)
    assert quality.issues == ("small",)
    assert quality.score < 0.5
    assert quality.size == side


def test_the_shorter_side_is_the_size() -> None:
    face = DetectedFace(Box(0, 0, 200, 24), ARCFACE_TEMPLATE, 0.9)
    quality = assess_quality(face, draw_crop())
    assert (quality.size, quality.issues) == (24, ("small",))


@pytest.mark.parametrize("yaw", [-65, 55])
def test_a_turned_head_is_named(yaw: float) -> None:
    quality = assess(landmarks=photograph(yaw))
    assert quality.issues == ("turned",)
    assert quality.yaw == pytest.approx(yaw, abs=0.1)
    assert quality.score < 0.5


def test_every_flaw_is_named() -> None:
    quality = assess(blur(draw_crop(), 6), photograph(70), side=20)
    assert set(quality.issues) == {"small", "blurred", "turned"}


def test_the_worst_flaw_is_the_score() -> None:
    assert assess(side=48).score == 0.5
    assert assess(side=48, landmarks=photograph(70)).score == pytest.approx(0.1, abs=0.01)


def test_a_crop_of_one_colour_is_blurred_and_finite() -> None:
    quality = assess(np.full((112, 112, 3), 128, np.uint8))
    assert (quality.sharpness, quality.issues, quality.score) == (0, ("blurred",), 0)
