"""A face on the template: the fit, and where the pixels end up."""

import cmath
import math

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Pixels, Point
from sameface.model.photo.align import align_face, fit_similarity

SIZE = (112, 112)
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (255, 0, 255))
GREY = 60
WINDOW = 8  # pixels around a place in which its mark is looked for


def move(points: tuple[Point, ...], turn_and_scale: complex, shift: complex) -> tuple[Point, ...]:
    moved = [turn_and_scale * complex(*point) + shift for point in points]
    return tuple((point.real, point.imag) for point in moved)


def draw_marks(points: tuple[Point, ...], radius: float, size: tuple[int, int]) -> Image.Image:
    """A grey picture with a round, smooth-edged mark of its own colour on every point."""
    rows, columns = np.mgrid[: size[1], : size[0]]
    pixels = np.full((size[1], size[0], 3), GREY, float)
    for (x, y), colour in zip(points, COLOURS, strict=True):
        cover = np.clip(radius + 0.5 - np.hypot(columns - x, rows - y), 0, 1)[..., np.newaxis]
        pixels += cover * (np.array(colour) - GREY)
    return Image.fromarray(pixels.round().astype(np.uint8))


def miss_of_mark(crop: Pixels, place: Point, colour: tuple[int, ...]) -> float:
    """How far from its place the mark of this colour is, in pixels."""
    left, top = (round(number) - WINDOW for number in place)
    window = crop[top : top + 2 * WINDOW + 1, left : left + 2 * WINDOW + 1].astype(float)
    assert window[WINDOW, WINDOW] == pytest.approx(colour, abs=10)
    weight = np.abs(window - GREY).sum(axis=2)
    rows, columns = np.mgrid[: len(window), : len(window)]
    centre = left + np.average(columns, weights=weight), top + np.average(rows, weights=weight)
    return math.dist(centre, place)


def largest_miss(crop: Pixels, template: tuple[Point, ...]) -> float:
    return max(miss_of_mark(crop, place, colour) for place, colour in zip(template, COLOURS, strict=True))


@pytest.mark.parametrize("degrees", [0, 17, 90, -135, 180])
@pytest.mark.parametrize("scale", [0.1, 1, 7.5])
def test_a_known_turn_scale_and_shift_is_recovered(degrees: float, scale: float) -> None:
    turn_and_scale, shift = cmath.rect(scale, math.radians(degrees)), complex(-31, 250)
    target = move(ARCFACE_TEMPLATE, turn_and_scale, shift)
    assert fit_similarity(ARCFACE_TEMPLATE, target) == pytest.approx((turn_and_scale, shift), rel=1e-9)


def test_the_fit_is_the_best_there_is() -> None:
    """No small change of the fit to noisy points comes closer to them."""
    shifts = np.random.default_rng(3).normal(0, 5, (5, 2))
    target = tuple((x + dx, y + dy) for (x, y), (dx, dy) in zip(ARCFACE_TEMPLATE, shifts, strict=True))
    a, b = fit_similarity(ARCFACE_TEMPLATE, target)

    def error(a: complex, b: complex) -> float:
        moved = move(ARCFACE_TEMPLATE, a, b)
        return sum(math.dist(here, there) ** 2 for here, there in zip(moved, target, strict=True))

    steps = [1e-3 * cmath.exp(1j * angle) for angle in np.linspace(0, 2 * math.pi, 16)]
    assert all(error(a + step, b) > error(a, b) and error(a, b + step) > error(a, b) for step in steps)


def test_a_mirrored_face_is_not_mirrored_back() -> None:
    """A similarity never reflects: the left eye of the picture stays on the left."""
    mirrored = tuple((-x, y) for x, y in ARCFACE_TEMPLATE)
    a, _ = fit_similarity(mirrored, ARCFACE_TEMPLATE)
    assert abs(a) < 0.9


@pytest.mark.parametrize("degrees", [0, 25, -40, 90, 180])
@pytest.mark.parametrize("scale", [0.6, 1, 1.7, 2.3, 4, 6.6])
def test_marks_on_the_landmarks_lie_on_the_template(degrees: float, scale: float) -> None:
    around = cmath.rect(scale, math.radians(degrees))
    side = round(180 * scale)
    landmarks = move(
        ARCFACE_TEMPLATE, around, complex(side / 2 + 0.3, side / 2 - 0.2) - around * complex(56, 70)
    )
    image = draw_marks(landmarks, 4 * scale, (side, side))
    crop = align_face(np.asarray(image), landmarks, ARCFACE_TEMPLATE, SIZE)
    assert crop.shape == (112, 112, 3)
    assert largest_miss(crop, ARCFACE_TEMPLATE) < 0.2


@pytest.mark.parametrize("scale", [1, 3])
def test_a_crop_may_be_wider_than_high(scale: float) -> None:
    template = tuple((x + 20, y) for x, y in ARCFACE_TEMPLATE)
    landmarks = move(ARCFACE_TEMPLATE, scale, complex(100, 50))
    crop = align_face(
        np.asarray(draw_marks(landmarks, 4 * scale, (600, 500))), landmarks, template, (152, 112)
    )
    assert crop.shape == (112, 152, 3)
    assert largest_miss(crop, template) < 0.2


@pytest.mark.parametrize("scale", [2.1, 2.5, 3, 4, 5.7])
@pytest.mark.parametrize("degrees", [0, 30])
def test_all_pixels_of_a_large_face_count(scale: float, degrees: float) -> None:
    """A checkerboard of single pixels is mid grey; skipping pixels would keep black and white ones."""
    rows, columns = np.mgrid[:900, :900]
    board = Image.fromarray(np.where((rows + columns) % 2, 255, 0).astype(np.uint8)).convert("RGB")
    around = cmath.rect(scale, math.radians(degrees))
    landmarks = move(ARCFACE_TEMPLATE, around, complex(450, 450) - around * complex(56, 56))
    crop = align_face(np.asarray(board), landmarks, ARCFACE_TEMPLATE, SIZE)
    assert crop.min() >= 92
    assert crop.max() <= 163
    assert crop.mean() == pytest.approx(127.5, abs=2)


@pytest.mark.parametrize(("shift", "visible"), [((-145, -60), (1, 4)), ((40, 240), (0, 1))])
def test_what_is_visible_of_a_large_face_at_the_edge_keeps_its_place(
    shift: Point, visible: tuple[int, ...]
) -> None:
    """The picture ends across the face: its left half, or its mouth, is outside."""
    landmarks = move(ARCFACE_TEMPLATE, 3, complex(*shift))
    crop = align_face(np.asarray(draw_marks(landmarks, 12, (500, 460))), landmarks, ARCFACE_TEMPLATE, SIZE)
    misses = [miss_of_mark(crop, ARCFACE_TEMPLATE[index], COLOURS[index]) for index in visible]
    assert max(misses) < 0.2


def test_a_face_that_lies_on_the_template_keeps_its_pixels() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (112, 112, 3), np.uint8)
    crop = align_face(pixels, ARCFACE_TEMPLATE, ARCFACE_TEMPLATE, SIZE)
    assert np.array_equal(crop, pixels)


def test_a_whole_shift_keeps_the_pixels() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (300, 300, 3), np.uint8)
    landmarks = move(ARCFACE_TEMPLATE, 1, complex(40, 70))
    crop = align_face(pixels, landmarks, ARCFACE_TEMPLATE, SIZE)
    assert np.abs(crop.astype(int) - pixels[70:182, 40:152]).max() <= 1


def test_what_lies_outside_the_picture_is_black() -> None:
    white = Image.new("RGB", (112, 112), (255, 255, 255))
    landmarks = move(ARCFACE_TEMPLATE, 1, complex(-56, 0))
    crop = align_face(np.asarray(white), landmarks, ARCFACE_TEMPLATE, SIZE)
    assert (crop[:, :54].max(), crop[:, 58:].min()) == (0, 255)
