"""A bundle: what a network is fed, and what its identity binds to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sameface.model.bundles.bundle import Bundle, hash_file, load_bundle, save_bundle
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from tests.model.bundles.manifest import CONTRACT, rewrite


def feed(**contract: Any) -> list[float]:
    """What the network gets for one pixel of red 10, green 20, blue 30."""
    bundle = Bundle(replace(CONTRACT, **contract), Path(), "x.onnx", "0")
    image = np.array([[[[10, 20, 30]]]], np.uint8)  # (1, 1, 1, 3)
    pixels = bundle.preprocess(image)
    assert (pixels.shape, pixels.dtype) == ((1, 3, 1, 1), np.float32)
    return [float(value) for value in pixels[0, :, 0, 0]]


# What the network is fed.


def test_rgb_pixels_go_in_as_they_are() -> None:
    assert feed() == [10, 20, 30]


def test_bgr_pixels_go_in_turned_round() -> None:
    assert feed(colour_order="bgr") == [30, 20, 10]


def test_the_mean_is_taken_from_its_own_channel() -> None:
    assert feed(mean=(1.0, 2.0, 4.0)) == [9, 18, 26]


def test_the_mean_comes_before_the_deviation() -> None:
    assert feed(mean=(1.0, 2.0, 4.0), std=(3.0, 6.0, 13.0)) == [3, 3, 2]


def test_the_deviation_divides_without_a_mean() -> None:
    assert feed(std=(2.0, 5.0, 10.0)) == [5, 4, 3]


def test_mean_and_deviation_are_in_the_networks_own_order() -> None:
    assert feed(colour_order="bgr", mean=(10.0, 5.0, 2.0), std=(2.0, 3.0, 4.0)) == [10, 5, 2]


def test_rows_stay_rows_and_columns_columns() -> None:
    image = np.zeros((2, 4, 6, 3), np.uint8)
    image[1, 3, 5, 2] = 9
    pixels = Bundle(CONTRACT, Path(), "x.onnx", "0").preprocess(image)
    assert pixels.shape == (2, 3, 4, 6)
    assert pixels[1, 2, 3, 5] == 9
    assert pixels.sum() == 9


def test_beside_and_below_the_image_the_canvas_is_black() -> None:
    contract = replace(CONTRACT, mean=(1.0, 2.0, 3.0), std=(2.0, 2.0, 2.0))
    bundle = Bundle(contract, Path(), "x.onnx", "0")
    image = np.full((1, 2, 3, 3), 200, np.uint8)
    canvas = np.zeros((1, 4, 8, 3), np.uint8)
    canvas[:, :2, :3] = image
    for _ in range(20):  # memory that was used before has other numbers in it
        np.testing.assert_array_equal(bundle.preprocess(image, (4, 8)), bundle.preprocess(canvas))


def test_preprocessing_leaves_the_image_alone() -> None:
    image = np.full((1, 2, 2, 3), 100, np.uint8)
    contract = replace(CONTRACT, mean=(127.5,) * 3, std=(128.0,) * 3)
    Bundle(contract, Path(), "x.onnx", "0").preprocess(image)
    assert (image == 100).all()


# Saved and loaded.


def test_a_saved_bundle_is_loaded_as_it_was(tmp_path: Path) -> None:
    contract = replace(
        CONTRACT,
        colour_order="bgr",
        mean=(127.5, 127.0, 126.5),
        std=(128.0, 2.0, 3.0),
        published_threshold=0.4,
        licence="MIT",
        source="somewhere",
        recipe={"loss": "cosface", "margin": 0.35},
        parity={"largest": 1e-6},
        calibration="ours",
    )
    source = tmp_path / "trained.onnx"
    source.write_bytes(b"weights")
    saved = save_bundle(contract, source, tmp_path / "models" / "a-model")
    assert load_bundle(tmp_path / "models" / "a-model") == saved
    assert saved.contract == contract
    assert saved.path.read_bytes() == b"weights"
    assert saved.sha256 == hash_file(source)


def test_a_bundle_of_the_kind_that_is_needed_is_loaded(bundle: Bundle) -> None:
    assert load_bundle(bundle.folder, "recogniser") == bundle


# The identity.


@pytest.mark.parametrize(
    "change",
    [
        {"colour_order": "bgr"},
        {"mean": (1.0, 0.0, 0.0)},
        {"std": (1.0, 1.0, 2.0)},
        {"template": tuple((x + 1, y) for x, y in ARCFACE_TEMPLATE)},
        {"template": ARCFACE_TEMPLATE[::-1]},
        {"input_size": (112, 96)},
        {"dimension": 64},
    ],
    ids=str,
)
def test_what_decides_an_embedding_changes_the_identity(bundle: Bundle, change: dict[str, Any]) -> None:
    assert replace(bundle, contract=replace(bundle.contract, **change)).identity != bundle.identity


def test_other_weights_have_another_identity(bundle: Bundle) -> None:
    assert replace(bundle, sha256="0" * 64).identity != bundle.identity


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"licence": "MIT"},
        {"source": "elsewhere"},
        {"published_threshold": 0.9},
        {"calibration": "other"},
        {"recipe": {"loss": "arcface"}},
        {"parity": {"largest": 0.1}},
    ],
    ids=str,
)
def test_what_does_not_decide_an_embedding_keeps_the_identity(bundle: Bundle, change: dict[str, Any]) -> None:
    assert replace(bundle, contract=replace(bundle.contract, **change)).identity == bundle.identity


def test_a_moved_bundle_keeps_its_identity(bundle: Bundle) -> None:
    assert replace(bundle, folder=Path("elsewhere"), file="renamed.onnx").identity == bundle.identity


def test_a_number_written_in_another_way_keeps_the_identity(bundle: Bundle) -> None:
    by_hand = load_bundle(rewrite(bundle, mean=[0, 0, 0], std=[1, 1, 1]))
    assert by_hand.identity == bundle.identity
