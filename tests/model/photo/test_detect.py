"""Faces and landmarks in photos of any size, and the arithmetic behind them against a naive one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.faces import Box, DetectedFace, Point
from sameface.model.photo.detect import (
    Detector,
    DetectorOptions,
    decode_stride,
    suppress_overlaps,
    to_face,
    to_faces,
)
from sameface.model.pipeline import Pipeline
from tests.networks import FACE_SIDE
from tests.pictures import draw_photo, draw_speck

PERSON = 4


@pytest.fixture
def detector(pipeline: Pipeline) -> Detector:
    return pipeline.detector


def row_of(left: float, top: float, width: float, height: float, score: float) -> list[float]:
    """A found row whose landmarks do not matter."""
    return [left, top, width, height, *([0.0] * 10), score]


def boxes_of(faces: list[DetectedFace]) -> list[Box]:
    return sorted((face.box for face in faces), key=lambda box: (box.left, box.top))


def assert_box_near(box: Box, left: float, top: float, side: float, tolerance: float) -> None:
    expected = (left, top, side, side)
    assert (box.left, box.top, box.width, box.height) == pytest.approx(expected, abs=tolerance)


def place_face(width: int, height: int, left: int, top: int, scale: int = 1) -> Image.Image:
    """A photo of this size with one face there, drawn `scale` times as large."""
    face = draw_photo(PERSON).crop((48, 96, 48 + FACE_SIDE, 96 + FACE_SIDE))
    photo = Image.new("RGB", (width, height))
    photo.paste(face.resize((FACE_SIDE * scale,) * 2, Image.Resampling.NEAREST), (left, top))
    return photo


def template_in(left: float, top: float, side: float) -> list[Point]:
    return [(left + x / 112 * side, top + y / 112 * side) for x, y in ARCFACE_TEMPLATE]


def test_faces_are_found_where_they_are_drawn(detector: Detector) -> None:
    faces = detector.detect(np.asarray(draw_photo(1, 2, 3)))
    assert boxes_of(faces) == [Box(left, 96, FACE_SIDE, FACE_SIDE) for left in (48, 128, 208)]


def test_landmarks_lie_in_the_face(detector: Detector) -> None:
    [face] = detector.detect(np.asarray(draw_photo(PERSON)))
    assert np.array(face.landmarks) == pytest.approx(np.array(template_in(48, 96, FACE_SIDE)), abs=0.01)


@pytest.mark.parametrize(
    ("width", "height", "left", "top"),
    [(320, 240, 16, 32), (317, 243, 240, 176), (97, 65, 32, 16), (48, 48, 0, 0), (640, 481, 592, 432)],
)
def test_sides_need_not_be_multiples_of_the_strides(
    detector: Detector, width: int, height: int, left: int, top: int
) -> None:
    [face] = detector.detect(np.asarray(place_face(width, height, left, top)))
    assert_box_near(face.box, left, top, FACE_SIDE, 0.01)


@pytest.mark.parametrize(
    ("width", "height", "scale", "left", "top"),
    [(1280, 960, 2, 960, 640), (1280, 720, 2, 96, 64), (960, 1920, 3, 576, 1440), (3200, 2400, 5, 800, 1600)],
)
def test_large_photos_give_places_in_their_own_pixels(
    detector: Detector, width: int, height: int, scale: int, left: int, top: int
) -> None:
    [face] = detector.detect(np.asarray(place_face(width, height, left, top, scale)))
    side = FACE_SIDE * scale
    assert_box_near(face.box, left, top, side, 0.1 * scale)
    expected = np.array(template_in(left, top, side))
    assert np.array(face.landmarks) == pytest.approx(expected, abs=0.1 * scale)


def test_a_large_photo_of_odd_size_gives_places_in_its_own_pixels(detector: Detector) -> None:
    """1333 pixels become 640: a face twice as large nearly fits the cells, and its place stays true."""
    scale = 1333 / 640
    left, top = round(320 * scale), round(160 * scale)
    photo = Image.new("RGB", (1333, 777))
    face = draw_photo(PERSON).crop((48, 96, 96, 144)).resize((round(FACE_SIDE * scale),) * 2)
    photo.paste(face, (left, top))
    [found] = detector.detect(np.asarray(photo))
    assert_box_near(found.box, left, top, FACE_SIDE * scale, 2)


def test_an_empty_photo_has_no_face(detector: Detector) -> None:
    assert detector.detect(np.asarray(draw_photo())) == []


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (3000, 2)])
def test_a_photo_of_hardly_any_pixels_has_no_face(detector: Detector, size: tuple[int, int]) -> None:
    assert detector.detect(np.asarray(Image.new("RGB", size, (90, 0, 0)))) == []


def test_a_lower_min_score_finds_what_a_higher_one_does_not(detector: Detector) -> None:
    pale = Image.fromarray(np.asarray(draw_photo(PERSON)) // 2)
    assert detector.detect(np.asarray(pale)) == []
    lenient = Detector(detector.bundle, detector.sessions, replace(detector.options, min_score=0.45))
    [face] = lenient.detect(np.asarray(pale))
    assert_box_near(face.box, 48, 96, FACE_SIDE, 0.01)
    assert face.score == pytest.approx(0.5, abs=0.01)


def test_small_faces_come_from_the_finest_stride(detector: Detector) -> None:
    [face] = detector.detect(np.asarray(draw_speck()))
    assert_box_near(face.box, 158, 78, 12, 0.01)


def naive_rows(
    outputs: dict[str, np.ndarray], stride: int, width: int, height: int, min_score: float
) -> np.ndarray:
    """What YuNet's outputs mean, cell by cell."""
    rows = []
    for row in range(height // stride):
        for column in range(width // stride):
            cell = row * (width // stride) + column
            cls, obj = (
                min(1.0, max(0.0, outputs[f"{part}_{stride}"][0, cell, 0])) for part in ("cls", "obj")
            )
            score = math.sqrt(cls * obj)
            if score < min_score:
                continue
            x, y, log_width, log_height = outputs[f"bbox_{stride}"][0, cell]
            box_width, box_height = math.exp(log_width) * stride, math.exp(log_height) * stride
            points = outputs[f"kps_{stride}"][0, cell]
            landmarks = [
                (points[number] + (row if number % 2 else column)) * stride for number in range(len(points))
            ]
            left, top = (column + x) * stride - box_width / 2, (row + y) * stride - box_height / 2
            rows.append([left, top, box_width, box_height, *landmarks, score])
    return np.array(rows)


def random_outputs(stride: int, width: int, height: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(stride)
    cells = (width // stride) * (height // stride)
    scores = {
        f"{part}_{stride}": random.uniform(-0.2, 1.2, (1, cells, 1)).astype(np.float32)
        for part in ("cls", "obj")
    }
    numbers = {
        f"{part}_{stride}": random.normal(0, 1, (1, cells, count)).astype(np.float32)
        for part, count in (("bbox", 4), ("kps", 10))
    }
    return scores | numbers


@pytest.mark.parametrize("stride", [8, 16, 32])
def test_outputs_are_read_as_cell_by_cell(stride: int) -> None:
    width, height = 160, 96
    outputs = random_outputs(stride, width, height)
    expected = naive_rows(outputs, stride, width, height, min_score=0.5)
    found = decode_stride(outputs, stride, width, min_score=0.5)
    assert 0 < len(found) < width * height // stride**2
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("logit", [80, 1e4, 1e30, np.inf, -1e4, -1e30])
def test_huge_box_logits_stay_finite(logit: float) -> None:
    outputs = random_outputs(16, 160, 96)
    outputs["bbox_16"][..., 2:] = logit
    kept = suppress_overlaps(decode_stride(outputs, 16, 160, min_score=0.5))
    assert len(kept) > 0
    assert np.isfinite(kept).all()
    for row in kept:
        box = to_face(row, (160, 96)).box
        assert 0 <= box.width <= 160
        assert 0 <= box.height <= 96


def test_scores_that_are_not_numbers_are_no_faces() -> None:
    outputs = random_outputs(16, 160, 96)
    outputs["cls_16"][...] = np.nan
    assert len(decode_stride(outputs, 16, 160, min_score=0.5)) == 0


def test_of_overlapping_boxes_the_best_is_kept() -> None:
    found = np.array(
        [row_of(0, 0, 100, 100, 0.8), row_of(10, 5, 100, 100, 0.95), row_of(200, 0, 100, 100, 0.7)],
        np.float32,
    )
    assert suppress_overlaps(found) == pytest.approx(found[[1, 2]])


@pytest.mark.parametrize(("shift", "kept"), [(50, 1), (52, 1), (56, 2), (100, 2), (150, 2)])
def test_boxes_may_overlap_by_three_tenths(shift: float, kept: int) -> None:
    """Two equal boxes of side 100 share (100 - shift) / (100 + shift) of their union."""
    found = np.array([row_of(0, 0, 100, 100, 0.9), row_of(shift, 0, 100, 100, 0.8)], np.float32)
    assert len(suppress_overlaps(found)) == kept


def test_a_box_hidden_by_a_suppressed_one_only_is_kept() -> None:
    chain = [row_of(0, 0, 100, 100, 0.9), row_of(45, 0, 100, 100, 0.8), row_of(90, 0, 100, 100, 0.7)]
    found = np.array(chain, np.float32)
    assert suppress_overlaps(found) == pytest.approx(found[[0, 2]])


def test_nothing_found_is_nothing_kept() -> None:
    assert suppress_overlaps(np.zeros((0, 15), np.float32)).shape == (0, 15)


def test_boxes_of_no_area_do_not_divide_by_zero() -> None:
    found = np.array([row_of(5, 5, 0, 0, 0.9), row_of(5, 5, 0, 0, 0.8)], np.float32)
    assert np.isfinite(suppress_overlaps(found)).all()


@pytest.mark.parametrize(
    ("row", "box"),
    [
        ((-10, -20, 50, 60, 0.9), Box(0, 0, 40, 40)),
        ((80, 70, 50, 60, 0.9), Box(80, 70, 20, 10)),
        ((-5, -5, 200, 200, 0.9), Box(0, 0, 100, 80)),
        ((10, 20, 30, 40, 0.9), Box(10, 20, 30, 40)),
    ],
)
def test_boxes_are_cut_to_the_photo(row: tuple[float, ...], box: Box) -> None:
    assert to_face(np.array(row_of(*row), np.float32), (100, 80)).box == box


@pytest.mark.parametrize(("left", "top"), [(120, 10), (10, 95), (-90, 10), (10, -90)])
def test_a_box_beside_the_photo_does_not_leave_it(left: float, top: float) -> None:
    """The black canvas around a photo may be up to 31 pixels wide."""
    box = to_face(np.array(row_of(left, top, 40, 40, 0.9), np.float32), (100, 80)).box
    assert 0 <= box.left <= box.left + box.width <= 100
    assert 0 <= box.top <= box.top + box.height <= 80


def test_a_face_across_the_edge_has_its_box_cut_and_its_landmarks_kept(detector: Detector) -> None:
    """Three quarters of a face in the corner: the detector sees the cells that are there."""
    lenient = Detector(detector.bundle, detector.sessions, DetectorOptions(min_score=0.6))
    photo = Image.new("RGB", (320, 240))
    photo.paste((0, 255, 0), (0, 96, 32, 144))
    [face] = lenient.detect(np.asarray(photo))
    assert face.box == Box(0, 96, 32, FACE_SIDE)
    assert np.array(face.landmarks) == pytest.approx(np.array(template_in(-16, 96, FACE_SIDE)), abs=0.01)


def test_a_face_whose_landmarks_are_one_point_is_no_face() -> None:
    rows = np.array([row_of(10, 10, 40, 40, 0.9), row_of(60, 10, 40, 40, 0.8)], np.float32)
    rows[0, 4:14] = 7
    rows[1, 4:14] = np.arange(10)
    assert [face.score for face in to_faces(rows, (200, 100))] == [pytest.approx(0.8)]
