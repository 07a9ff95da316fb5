"""What is wrong with a bundle is refused, in words that say what would fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sameface.model.bundles.bundle import Bundle, hash_file, load_bundle, save_bundle
from sameface.model.bundles.contract import read_contract
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.errors import BundleRefused
from sameface.model.runtime.session_pool import open_sessions
from tests.model.bundles.manifest import CONTRACT, rewrite
from tests.networks import DIMENSION, build_detector


def test_a_folder_without_a_bundle_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BundleRefused, match="sameface pull"):
        load_bundle(tmp_path / "nothing")


def test_another_file_under_the_same_name_is_refused_with_both_hashes(bundle: Bundle) -> None:
    bundle.path.write_bytes(bundle.path.read_bytes() + b"\n")
    with pytest.raises(BundleRefused) as refusal:
        load_bundle(bundle.folder)
    assert bundle.sha256 in refusal.value.detail
    assert hash_file(bundle.path) in refusal.value.detail


def test_a_missing_file_is_refused_by_name(bundle: Bundle) -> None:
    bundle.path.unlink()
    with pytest.raises(BundleRefused, match=r"lacks its ONNX file 'tiny\.onnx'"):
        load_bundle(bundle.folder)


@pytest.mark.parametrize("outside", ["../tiny.onnx", "inner/tiny.onnx", "{folder}/../tiny.onnx"])
def test_a_file_outside_the_folder_is_refused(bundle: Bundle, outside: str) -> None:
    content = bundle.path.read_bytes()
    inside = bundle.folder / "bundle"
    (inside / "inner").mkdir(parents=True)
    (inside / "inner" / "tiny.onnx").write_bytes(content)
    (bundle.folder / "bundle.json").rename(inside / "bundle.json")
    moved = replace(bundle, folder=inside)
    file = outside.format(folder=inside)
    with pytest.raises(BundleRefused) as refusal:
        load_bundle(rewrite(moved, file=file))
    assert f"lacks its ONNX file {file!r}" in refusal.value.detail


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe", b'{"name": }'])
def test_a_broken_manifest_is_refused_by_its_path(bundle: Bundle, content: bytes) -> None:
    path = bundle.folder / "bundle.json"
    path.write_bytes(content)
    with pytest.raises(BundleRefused, match="cannot be read as JSON") as refusal:
        load_bundle(bundle.folder)
    assert str(path) in refusal.value.detail


@pytest.mark.parametrize("content", ["[]", '"text"', "3"])
def test_a_manifest_that_is_no_object_is_refused(bundle: Bundle, content: str) -> None:
    (bundle.folder / "bundle.json").write_text(content)
    with pytest.raises(BundleRefused, match="must hold a JSON object"):
        load_bundle(bundle.folder)


def test_an_unknown_key_is_refused_with_the_known_ones(bundle: Bundle) -> None:
    with pytest.raises(BundleRefused, match=r"unknown keys: color_order") as refusal:
        load_bundle(rewrite(bundle, color_order="rgb"))
    assert all(key in refusal.value.detail for key in ("colour_order", "input_size", "template"))


@pytest.mark.parametrize("key", ["name", "kind", "input_size", "colour_order"])
def test_a_missing_key_is_refused_by_name(bundle: Bundle, key: str) -> None:
    with pytest.raises(BundleRefused, match=f"lacks {key}"):
        load_bundle(rewrite(bundle, **{key: None}))


def test_all_missing_keys_are_named_at_once() -> None:
    with pytest.raises(BundleRefused, match="lacks colour_order, input_size"):
        read_contract({"name": "x", "kind": "detector"})


def test_a_bundle_of_another_kind_is_refused_with_both(tmp_path: Path) -> None:
    build_detector(tmp_path)
    with pytest.raises(BundleRefused, match="holds a detector; a recogniser is needed"):
        load_bundle(tmp_path, "recogniser")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("kind", "liveness", "recogniser, detector"),
        ("name", "a name with spaces", "1 to 128"),
        ("name", "", "1 to 128"),
        ("name", 7, "1 to 128"),
        ("colour_order", "grb", "rgb, bgr"),
        ("template", ARCFACE_TEMPLATE[:4], "five points"),
        ("template", [[1, 2, 3]] * 5, "five points"),
        ("template", "eyes", "five points"),
        ("template", [[float("nan"), 1.0]] * 5, "five points"),
        ("template", [[56.0, 56.0]] * 5, "points"),
        ("mean", [float("nan"), 0, 0], "three numbers"),
        ("mean", [float("inf"), 0, 0], "three numbers"),
        ("mean", [127.5], "three numbers"),
        ("mean", 127.5, "three numbers"),
        ("mean", ["127.5"] * 3, "three numbers"),
        ("std", [0, 1, 1], "three positive numbers"),
        ("std", [-1, 1, 1], "three positive numbers"),
        ("std", [float("nan")] * 3, "three positive numbers"),
        ("input_size", [112], "a width and a height"),
        ("input_size", [0, 112], "a width and a height"),
        ("input_size", [112.5, 112], "a width and a height"),
        ("input_size", "112x112", "a width and a height"),
        ("dimension", 0, "a positive number"),
        ("dimension", "128", "a positive number"),
        ("published_threshold", "high", "a similarity"),
        ("published_threshold", float("nan"), "a similarity"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_field_and_with_what_would_fit(
    bundle: Bundle, field: str, value: object, words: str
) -> None:
    with pytest.raises(BundleRefused, match=f"contract's {field} must be .*{words}"):
        load_bundle(rewrite(bundle, **{field: value}))


def test_a_recogniser_without_dimension_is_refused(bundle: Bundle) -> None:
    with pytest.raises(BundleRefused, match="contract's dimension must be"):
        load_bundle(rewrite(bundle, dimension=None))


def test_a_detector_needs_neither_template_nor_dimension() -> None:
    fields = {"name": "x", "kind": "detector", "input_size": [640, 640], "colour_order": "bgr"}
    assert read_contract(fields).template == ()


# What only running it can tell.


def test_another_dimension_than_the_contracts_is_refused_with_both(bundle: Bundle) -> None:
    wrong = load_bundle(rewrite(bundle, dimension=512))
    with pytest.raises(BundleRefused, match=rf"{DIMENSION},\).*contract says 512"):
        open_sessions(wrong, "cpu", bundle.folder / "cache")


def test_another_input_size_than_the_networks_is_refused(bundle: Bundle) -> None:
    wrong = load_bundle(rewrite(bundle, input_size=[96, 112]))
    with pytest.raises(BundleRefused, match="does not run on the input of its contract"):
        open_sessions(wrong, "cpu", bundle.folder / "cache")


def test_a_file_that_is_no_network_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "text.onnx"
    source.write_text("not a network")
    bundle = save_bundle(CONTRACT, source, tmp_path / "bundle")
    with pytest.raises(BundleRefused, match="does not run"):
        open_sessions(bundle, "cpu", tmp_path / "cache")


@pytest.mark.parametrize("change", [{"dimension": 512}, {"input_size": [96, 112]}], ids=str)
def test_a_prepared_graph_in_the_cache_does_not_hide_a_wrong_contract(
    bundle: Bundle, change: dict[str, Any]
) -> None:
    """The same file with the right contract was opened before."""
    open_sessions(bundle, "cpu", bundle.folder / "cache")
    wrong = load_bundle(rewrite(bundle, **change))
    with pytest.raises(BundleRefused):
        open_sessions(wrong, "cpu", bundle.folder / "cache")
