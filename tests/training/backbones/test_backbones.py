"""Every backbone by its shape, its gradients and the marks of its paper; thin ones, to be quick."""

import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from sameface.training.backbones.by_name import BACKBONES, build_backbone
from sameface.training.errors import RecipeRefused

THIN = {"residual": (8, 10, 12), "sphereface20": (8, 10, 12, 14), "iresnet18": (8, 10, 12, 14)}
FAMILIES = ("residual", "mobilefacenet", "sphereface20", "iresnet18")
every_family = pytest.mark.parametrize("name", FAMILIES)


def build_thin(name: str, **options: Any) -> nn.Module:
    torch.manual_seed(4)
    thin = {"widths": THIN[name]} if name in THIN else {}
    return build_backbone(name, 16, **thin, **options)


def crops_of(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, 3, 112, 112, generator=torch.Generator().manual_seed(1))


def count(backbone: nn.Module, kind: type[nn.Module]) -> int:
    return sum(isinstance(layer, kind) for layer in backbone.modules())


@pytest.mark.parametrize("name", BACKBONES)
def test_crops_become_embeddings_that_are_not_normalised(name: str) -> None:
    embeddings = build_thin(name)(crops_of())
    assert embeddings.shape == (3, 16)
    assert embeddings.isfinite().all()
    assert not torch.allclose(embeddings.norm(dim=1), torch.ones(3), atol=1e-3)


@every_family
def test_every_parameter_that_learns_gets_a_gradient(name: str) -> None:
    backbone = build_thin(name)
    embeddings = backbone(crops_of(4))
    (embeddings * torch.randn(embeddings.shape)).sum().backward()
    for parameter_name, parameter in backbone.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, parameter_name
            assert parameter.grad.abs().sum() > 0, parameter_name


@every_family
def test_only_the_last_scale_of_an_iresnet_is_fixed(name: str) -> None:
    fixed = [parameter for parameter in build_thin(name).parameters() if not parameter.requires_grad]
    assert [each.tolist() for each in fixed] == ([[1.0] * 16] if name == "iresnet18" else [])


@every_family
def test_channels_last_gives_the_same_embeddings(name: str) -> None:
    backbone, crops = build_thin(name).eval(), crops_of()
    expected = backbone(crops)
    backbone.to(memory_format=torch.channels_last)
    embeddings = backbone(crops.to(memory_format=torch.channels_last))
    # The sums come in another order, and without batch norm activations are large.
    assert (embeddings - expected).abs().max() <= 1e-4 * expected.abs().max()


@every_family
def test_a_face_embeds_the_same_alone_and_in_company_once_training_is_over(name: str) -> None:
    backbone, crops = build_thin(name), crops_of()
    backbone(crops)  # moves the running means of the batch norms
    backbone.eval()
    together = backbone(crops)
    assert torch.equal(backbone(crops), together)
    torch.testing.assert_close(backbone(crops[1:2]), together[1:2], rtol=1e-4, atol=1e-4)


@every_family
def test_the_seed_decides_the_weights(name: str) -> None:
    first, second = build_thin(name).state_dict(), build_thin(name).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("layers", [20, 36, 64])
def test_a_sphereface_cnn_has_the_layers_of_its_name_and_no_batch_norm(layers: int) -> None:
    backbone = build_thin(f"sphereface{layers}")
    assert count(backbone, nn.Conv2d) == layers
    assert count(backbone, nn.BatchNorm2d) == 0
    assert count(backbone, nn.PReLU) == layers


def test_a_sphereface_unit_starts_near_the_identity() -> None:
    torch.manual_seed(0)
    stages = build_backbone("sphereface20", 8, widths=(32, 32, 32, 32)).get_submodule("stages")
    halving, unit = stages.get_submodule("0"), stages.get_submodule("2")
    maps = torch.randn(2, 32, 8, 8)
    assert (unit(maps) - maps).abs().mean() < 0.05 * maps.abs().mean()
    assert halving.get_parameter("weight").var().item() == pytest.approx(1 / 27, rel=0.2)
    assert not halving.get_parameter("bias").any()


@pytest.mark.parametrize(("name", "blocks"), [("18", 8), ("34", 16), ("50", 24), ("100", 49)])
def test_an_iresnet_has_its_blocks_and_halves_in_their_second_convolution(name: str, blocks: int) -> None:
    network = build_thin(f"iresnet{name}").get_submodule("blocks")
    assert len(list(network.children())) == blocks
    strides = [layer.stride[0] for layer in network.get_submodule("0.branch") if isinstance(layer, nn.Conv2d)]
    assert strides == [1, 2]


def test_dropout_of_an_iresnet_works_in_training_alone() -> None:
    backbone, crops = build_thin("iresnet18", dropout=0.5), crops_of()
    assert not torch.equal(backbone(crops), backbone(crops))


def test_he_initialisation_keeps_the_scale() -> None:
    torch.manual_seed(0)
    weight = build_backbone("residual").get_submodule("blocks.4.branch.0").get_parameter("weight")
    assert weight.var().item() == pytest.approx(2 / (16 * 9), rel=0.1)


def test_a_residual_net_takes_any_number_of_stages() -> None:
    assert build_backbone("residual", 8, widths=(8, 10), depths=(1, 3))(crops_of()).shape == (3, 8)


def test_an_unknown_backbone_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused) as refusal:
        build_backbone("resnet50")
    assert refusal.value.code == "recipe_refused"
    assert all(name in refusal.value.detail for name in BACKBONES)


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RecipeRefused, match="widths, dropout"):
        build_backbone("iresnet50", depths=(1, 1, 1, 1))  # what the name says cannot be chosen


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("residual", {"widths": (8, 8)}),
        ("residual", {"widths": (), "depths": ()}),
        ("residual", {"widths": "abcd"}),
        ("residual", {"widths": (0, 8, 16, 32)}),
        ("residual", {"depths": (1, 1, 1, 0)}),
        ("residual", {"depths": 4}),
        ("residual", {"dimension": 0}),
        ("residual", {"dimension": "128"}),
        ("sphereface20", {"widths": (8, 8.5, 8, 8)}),
        ("iresnet18", {"dropout": 1.5}),
        ("iresnet18", {"dropout": "much"}),
    ],
)
def test_options_that_cannot_work_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(RecipeRefused):
        build_backbone(name, **options)


LEARN_THIN = """
import torch
from sameface.training.backbones.by_name import build_backbone

for widths in ((8, 8), (4, 12), (8, 16)):
    backbone = build_backbone("residual", 16, widths=widths, depths=(1, 1))
    backbone.to(memory_format=torch.channels_last)
    crops = torch.randn(16, 3, 112, 112).to(memory_format=torch.channels_last)
    for _ in range(4):
        backbone(crops).square().sum().backward()
"""


def test_networks_of_few_channels_learn_in_channels_last_without_damage_to_memory() -> None:
    learned = subprocess.run(
        [sys.executable, "-c", LEARN_THIN], capture_output=True, text=True, check=False, timeout=100
    )
    assert (learned.returncode, learned.stderr) == (0, "")


@pytest.mark.parametrize("name", ["residual", "iresnet18"])
def test_a_shortcut_has_the_weights_of_a_strided_convolution_under_the_same_names(name: str) -> None:
    backbone = build_thin(name)
    assert not [
        layer
        for layer in backbone.modules()
        if isinstance(layer, nn.Conv2d) and layer.kernel_size == (1, 1) and layer.stride != (1, 1)
    ]
    [shortcut, *_] = [
        part for part in backbone.modules() if isinstance(getattr(part, "stride", None), nn.AvgPool2d)
    ]
    assert set(shortcut.state_dict()) == {
        "0.weight",
        *(f"1.{value}" for value in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")),
    }
    strided = nn.Conv2d(
        shortcut.get_submodule("0").in_channels, shortcut.get_submodule("0").out_channels, 1, 2, bias=False
    )
    strided.load_state_dict(shortcut.get_submodule("0").state_dict())
    maps = torch.randn(2, strided.in_channels, 14, 14)
    before = nn.Sequential(strided, shortcut.get_submodule("1"))
    assert torch.allclose(before(maps), shortcut(maps), atol=1e-6)
