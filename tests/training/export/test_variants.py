"""Variants: smaller, opened as the server opens them, and kept only if they decide as well."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

pytest.importorskip("torch")

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.errors import BundleRefused
from sameface.model.measurement.errors import PairsRefused
from sameface.model.photo.embed import Embedder
from sameface.model.runtime.session_pool import open_sessions
from sameface.training.data.synthetic.people import write_identities
from sameface.training.export.variants import VARIANTS, Trial, plan_trial, try_bundle
from tests.training.conftest import PEOPLE
from tests.training.export.test_export import draw_noise, run, save_trained


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "last.pt"
    save_trained(path, "iresnet18")  # has all there is: PReLU, and batch norms that stay
    return path


def export_variants(checkpoint: Path, out: Path, pairs: Path, crops: Path, *more: object) -> Bundle:
    run(checkpoint, "--out", out, "--pairs", pairs, "--images", crops, *more)
    return load_bundle(out)


@pytest.mark.parametrize(
    ("kind", "least_cosine", "largest_share"), [("fp16", 0.9999, 0.6), ("int8", 0.95, 0.5)]
)
def test_a_variant_is_smaller_and_embeds_nearly_the_same(
    tmp_path: Path,
    checkpoint: Path,
    drawn_pairs: Path,
    drawn_faces: Path,
    kind: str,
    least_cosine: float,
    largest_share: float,
) -> None:
    full = export_variants(
        checkpoint, tmp_path / "out", drawn_pairs, drawn_faces, "--variant", kind, "--max-loss", 1
    )
    small = load_bundle(tmp_path / f"out-{kind}")
    assert small.contract.name == f"tiny-{kind}"
    weights = [onnx.load(bundle.path).graph.initializer for bundle in (full, small)]
    sizes = [sum(len(weight.SerializeToString()) for weight in each) for each in weights]
    assert sizes[1] < sizes[0] * largest_share
    bundles = [Embedder(bundle, open_sessions(bundle, "cpu", tmp_path / "cache")) for bundle in (full, small)]
    shown = [bundle.embed(list(draw_noise(3))) for bundle in bundles]
    cosines = [first.values @ second.values for first, second in zip(*shown, strict=True)]
    assert min(cosines) > least_cosine
    assert all(embedding.values.dtype == np.float32 for embedding in shown[1])


def test_a_variant_says_what_it_lost(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path, drawn_faces: Path
) -> None:
    full = export_variants(
        checkpoint, tmp_path / "out", drawn_pairs, drawn_faces, "--variant", "fp16", "--max-loss", 0.5
    )
    small = load_bundle(tmp_path / "out-fp16")
    assert full.contract.parity is not None
    assert small.contract.parity is not None
    assert full.contract.parity["measured"]["pairs"] == 2 * PEOPLE
    assert small.contract.parity["float32_accuracy"] == full.contract.parity["measured"]["accuracy"]
    assert small.contract.parity["size_bytes"] == small.path.stat().st_size
    assert small.contract.published_threshold == round(small.contract.parity["measured"]["threshold"], 6)
    assert "kept because it loses" in (small.folder / "README.md").read_text()


def make_everybody_the_same(bundle: Bundle, target: Path, _trial: Trial) -> None:
    """A conversion gone wrong."""
    network = onnx.load(bundle.path)
    gemm = next(node for node in network.graph.node if node.op_type == "Gemm")
    for weight in network.graph.initializer:
        if weight.name in gemm.input:
            values = numpy_helper.to_array(weight)
            flat = np.full_like(values, 0 if values.ndim == 2 else 1)
            weight.CopyFrom(numpy_helper.from_array(flat, weight.name))
    onnx.save(network, target)


def test_a_variant_that_loses_too_much_is_refused_and_the_others_stay(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path, drawn_faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VARIANTS, "blind", make_everybody_the_same)
    out = tmp_path / "out"
    with pytest.raises(
        BundleRefused, match=r"blind is refused: accuracy falls .* to 0\.5000.*Kept: .*out-fp16"
    ):
        export_variants(checkpoint, out, drawn_pairs, drawn_faces, "--variant", "blind", "--variant", "fp16")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-fp16"]


def test_the_contract_has_the_accuracy_of_the_file_beside_it(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path, drawn_faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, close = [], Embedder.close
    monkeypatch.setattr(Embedder, "close", lambda self: (closed.append(self.identity), close(self)))
    bundle = export_variants(checkpoint, tmp_path / "out", drawn_pairs, drawn_faces)
    trial = plan_trial(drawn_pairs, drawn_faces, None, 0)
    closed.clear()
    measured = try_bundle(bundle, trial.pairs, tmp_path / "cache")
    assert closed == [bundle.identity]
    assert measured.missing == 0
    assert bundle.contract.parity is not None
    assert measured.accuracy == bundle.contract.parity["measured"]["accuracy"] > 0.5


def test_a_crop_that_is_missing_or_damaged_makes_its_pairs_wrong(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path
) -> None:
    write_identities(tmp_path / "crops", 1, 1)
    (tmp_path / "crops" / "0000" / "0000_0001.png").write_bytes(b"no picture")
    bundle = export_variants(checkpoint, tmp_path / "out", drawn_pairs, tmp_path / "crops")
    assert bundle.contract.parity is not None
    measured = bundle.contract.parity["measured"]
    assert (measured["accuracy"], measured["missing_pairs"]) == (0, 2 * PEOPLE)


def test_int8_may_be_calibrated_on_other_crops(tmp_path: Path, drawn_pairs: Path, drawn_faces: Path) -> None:
    write_identities(tmp_path / "others", 2, 2, seed=9)
    assert len(plan_trial(drawn_pairs, drawn_faces, tmp_path / "others", 0).calibration) == 4
    (tmp_path / "none").mkdir()
    with pytest.raises(BundleRefused, match="no crops to calibrate"):
        plan_trial(drawn_pairs, drawn_faces, tmp_path / "none", 0)


def test_a_variant_cannot_be_had_untried(tmp_path: Path, checkpoint: Path, drawn_faces: Path) -> None:
    for more in (("--variant", "int8"), ("--variant", "int8", "--images", drawn_faces)):
        with pytest.raises(BundleRefused, match="--pairs FILE and --images FOLDER"):
            run(checkpoint, "--out", tmp_path / "out", *more)
    assert not list(tmp_path.iterdir())


def test_an_unknown_variant_is_refused_by_name(tmp_path: Path, checkpoint: Path) -> None:
    with pytest.raises(BundleRefused, match="called fp4; known are fp16, int8"):
        run(checkpoint, "--out", tmp_path / "out", "--variant", "fp4")


def test_pairs_that_cannot_be_read_are_refused_before_any_work(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path
) -> None:
    for file, images in ((tmp_path / "none.txt", tmp_path), (drawn_pairs, tmp_path / "nowhere")):
        with pytest.raises(PairsRefused):
            run(checkpoint, "--out", tmp_path / "out", "--pairs", file, "--images", images)
    assert not list(tmp_path.iterdir())


def test_a_variant_does_not_replace_what_is_there(
    tmp_path: Path, checkpoint: Path, drawn_pairs: Path, drawn_faces: Path
) -> None:
    (tmp_path / "out-int8").mkdir()
    (tmp_path / "out-int8" / "mine.txt").write_text("mine")
    with pytest.raises(BundleRefused, match="out-int8 is there already"):
        export_variants(checkpoint, tmp_path / "out", drawn_pairs, drawn_faces, "--variant", "int8")
    assert not (tmp_path / "out").exists()
