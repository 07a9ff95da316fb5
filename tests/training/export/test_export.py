"""Export: what is served is what was trained, all of it or nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

import torch
from torch import nn

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.model.errors import BundleRefused
from sameface.model.photo.embed import Embedder
from sameface.model.runtime.session_pool import open_sessions
from sameface.training.backbones.by_name import build_backbone
from sameface.training.commands.export import app
from sameface.training.data.crop import MEAN, STD, to_input
from sameface.training.errors import CheckpointRefused
from sameface.training.export.export import OPSET, describe_contract, export_network, read_trained
from sameface.training.loop.checkpoint import save_checkpoint
from sameface.training.recipe import DataSection, Recipe

SMALL: dict[str, dict[str, Any]] = {
    "residual": {"widths": [8, 8, 16], "depths": [1, 1, 1]},
    "mobilefacenet": {},
    "sphereface20": {"widths": [8, 8, 8, 16]},
    "iresnet18": {"widths": [8, 8, 8, 16]},
}


def build_trained(name: str) -> nn.Module:
    """A backbone that has seen some input: batch norms are no longer the identity, weights differ."""
    torch.manual_seed(1)
    backbone = build_backbone(name, 16, **SMALL[name])
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    backbone.train()
    with torch.no_grad():
        backbone(torch.rand(8, 3, 112, 112) * 2 - 1)
    return backbone.eval()


def save_trained(path: Path, name: str = "residual", **changes: Any) -> nn.Module:
    """A checkpoint as a run leaves it."""
    backbone = build_trained(name)
    state = {
        "architecture": {"backbone": name, "dimension": 16, "options": SMALL[name]},
        "recipe": Recipe(name="tiny", data=DataSection("faces")).describe(),
        "data": {"identities": 12, "images": 345, "left_out": 6, "unreadable": 7},
        "step": 89,
        "seen": 1380,
        "backbone": backbone.state_dict(),
        "average": None,
        "accuracy": 0.8125,
    }
    state.update(changes)
    save_checkpoint(path, {key: value for key, value in state.items() if value != "left out"})
    return backbone


def export(checkpoint: Path, folder: Path) -> Bundle:
    trained = read_trained(checkpoint)
    return export_network(trained, describe_contract(trained, "tiny", "unknown"), folder)


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """One bundle of each backbone, to look at."""
    folder = tmp_path_factory.mktemp("exports")
    for name in SMALL:
        save_trained(folder / f"{name}.pt", name)
    return {name: export(folder / f"{name}.pt", folder / name) for name in SMALL}


def run(*arguments: object) -> dict[str, Any]:
    """The command's answer for machines."""
    said = CliRunner().invoke(
        app, ["bundle", "export", *map(str, arguments), "--json"], catch_exceptions=False
    )
    assert said.exit_code == 0, said.output
    answer: list[dict[str, Any]] = json.loads(said.stdout)
    return answer[0]


def draw_noise(count: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (count, 112, 112, 3), np.uint8)


@pytest.mark.parametrize("name", SMALL)
def test_the_server_embeds_crops_as_the_trained_network_does(
    tmp_path: Path, exports: dict[str, Bundle], name: str
) -> None:
    backbone, bundle = build_trained(name), exports[name]
    crops = draw_noise(3)
    found = Embedder(bundle, open_sessions(bundle, "cpu", tmp_path / "cache")).embed(list(crops))
    with torch.no_grad():
        expected = nn.functional.normalize(backbone(to_input(torch.from_numpy(crops).permute(0, 3, 1, 2))))
    for embedding, right in zip(found, expected.numpy(), strict=True):
        np.testing.assert_allclose(embedding.values, right, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_batch_norms_that_follow_a_layer_are_folded_into_it(exports: dict[str, Bundle], name: str) -> None:
    network = onnx.load(exports[name].path)
    makers = {output: node.op_type for node in network.graph.node for output in node.output}
    norms = [node for node in network.graph.node if node.op_type == "BatchNormalization"]
    assert not [norm for norm in norms if makers.get(norm.input[0]) in ("Conv", "Gemm")]
    assert bool(norms) == (name == "iresnet18")  # only its blocks begin with one


def test_the_file_takes_any_batch_and_is_all_there_is(exports: dict[str, Bundle]) -> None:
    bundle = exports["residual"]
    network = onnx.load(bundle.path)
    (given,), (yielded,) = network.graph.input, network.graph.output
    assert (given.name, yielded.name) == ("crops", "embeddings")
    assert [value.type.tensor_type.shape.dim[0].dim_param for value in (given, yielded)] == ["batch"] * 2
    assert [entry.version for entry in network.opset_import if not entry.domain] == [OPSET]
    assert sorted(path.name for path in bundle.folder.iterdir()) == ["README.md", "bundle.json", "tiny.onnx"]
    assert not any("Identity" in node.op_type for node in network.graph.node)


def test_the_contract_gives_the_network_the_pixels_it_was_trained_on(exports: dict[str, Bundle]) -> None:
    bundle = exports["residual"]
    red = np.zeros((1, 112, 112, 3), np.uint8)
    red[..., 0] = 255
    pixels = bundle.preprocess(red)
    np.testing.assert_array_equal(pixels[0, :, 0, 0], [1, -1, -1])  # a swapped channel has its 1 elsewhere
    crops = draw_noise(2)
    np.testing.assert_array_equal(
        bundle.preprocess(crops), (crops.transpose(0, 3, 1, 2).astype(np.float32) - MEAN) / STD
    )
    assert bundle.contract.template == ARCFACE_TEMPLATE
    assert bundle.contract.input_size == (112, 112)


def test_the_contract_tells_how_it_was_trained_and_how_well_it_was_exported(
    exports: dict[str, Bundle],
) -> None:
    contract = exports["residual"].contract
    assert contract.recipe is not None
    assert contract.recipe["loss"]["head"] == "cosface"
    told = contract.recipe["trained"]
    assert (told["data"]["identities"], told["step"], told["seen"], told["accuracy"]) == (
        12,
        89,
        1380,
        0.8125,
    )
    assert contract.parity is not None
    assert contract.parity["least_cosine"] > 0.99999
    assert contract.parity["max_difference"] < 1e-3
    assert contract.parity["opset"] == OPSET


def test_averaged_weights_are_exported_where_there_are_any(tmp_path: Path) -> None:
    average = {key: torch.zeros_like(value) for key, value in build_trained("residual").state_dict().items()}
    save_trained(tmp_path / "last.pt", average=average)
    trained = read_trained(tmp_path / "last.pt")
    assert not any(weight.any() for weight in trained.backbone.parameters())
    assert describe_contract(trained, "tiny", "unknown").recipe["trained"]["averaged"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seen": "left out"}, "lacks 'seen'"),
        ({"architecture": {"backbone": "residual", "dimension": 16, "options": {}}}, "do not fit"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    save_trained(tmp_path / "last.pt", **changes)
    with pytest.raises(CheckpointRefused, match=said):
        read_trained(tmp_path / "last.pt")


def test_weights_that_are_not_finite_leave_nothing_behind(tmp_path: Path) -> None:
    state = build_trained("residual").state_dict()
    state["embed.1.weight"][0, 0] = float("nan")
    save_trained(tmp_path / "last.pt", backbone=state)
    with pytest.raises(BundleRefused, match="not finite"):
        export(tmp_path / "last.pt", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_a_network_that_computes_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_trained(tmp_path / "last.pt")
    monkeypatch.setattr(
        "sameface.training.export.export.to_input", lambda crops: crops.flip(1).float() / 128 - 1
    )  # BGR
    with pytest.raises(BundleRefused, match="do not agree"):
        export(tmp_path / "last.pt", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bundle_is_replaced_only_if_told_so(tmp_path: Path) -> None:
    save_trained(tmp_path / "last.pt")
    first = run(tmp_path / "last.pt", "--out", tmp_path / "out")
    with pytest.raises(BundleRefused, match="--replace"):
        run(tmp_path / "last.pt", "--out", tmp_path / "out", "--name", "other")
    assert load_bundle(tmp_path / "out").sha256 == first["sha256"]
    second = run(tmp_path / "last.pt", "--out", tmp_path / "out", "--name", "other", "--replace")
    assert (second["name"], load_bundle(tmp_path / "out").file) == ("other", "other.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.pt", "out"]


def test_a_folder_of_other_things_is_never_replaced(tmp_path: Path) -> None:
    save_trained(tmp_path / "last.pt")
    with pytest.raises(BundleRefused, match="holds no bundle"):
        run(tmp_path / "last.pt", "--out", tmp_path, "--replace")


def test_the_bundle_is_among_the_models_by_default(tmp_path: Path) -> None:
    save_trained(tmp_path / "last.pt")
    made = run(tmp_path / "last.pt", "--data", tmp_path / "data", "--licence", "CC0-1.0")
    assert made["folder"] == str(tmp_path / "data" / "models" / "tiny")
    assert (made["name"], made["licence"]) == ("tiny", "CC0-1.0")


def test_a_person_is_told_in_one_line(tmp_path: Path) -> None:
    save_trained(tmp_path / "last.pt")
    arguments = ["bundle", "export", str(tmp_path / "last.pt"), "--out", str(tmp_path / "out")]
    told = subprocess.run(
        [sys.executable, "-c", "from sameface.training.commands.export import app; app()", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.startswith(f"tiny is in {tmp_path / 'out'}: 0.0")
    assert (told.stdout.count("\n"), told.stderr) == (1, "")


@pytest.mark.parametrize("name", ["sface-2021dec", "../up"])
def test_a_name_that_is_taken_or_no_name_is_refused(tmp_path: Path, name: str) -> None:
    save_trained(tmp_path / "last.pt")
    with pytest.raises(BundleRefused, match="name"):
        run(tmp_path / "last.pt", "--data", tmp_path / "data", "--name", name)
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from sameface.model.errors import BundleRefused
from tests.training.export.test_export import export
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    export(Path(sys.argv[1]), Path(sys.argv[2]))
except BundleRefused as error:
    print(error.detail)
"""


def test_a_disk_that_is_full_leaves_the_old_bundle(tmp_path: Path) -> None:
    """With a limit on the size of files in the place of a full disk."""
    save_trained(tmp_path / "last.pt")
    before = export(tmp_path / "last.pt", tmp_path / "out").sha256
    said = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "last.pt"), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "cannot be written" in said
    assert load_bundle(tmp_path / "out").sha256 == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last.pt", "out"]
