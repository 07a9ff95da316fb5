"""Each change of crops by what it must do to known pictures, and the chance behind all of them."""

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from sameface.training.data.augment import LUMA, Augmentation
from sameface.training.errors import RecipeRefused

OFF = {"flip": 0.0, "shift": 0.0, "colour": 0.0, "low_resolution": 0.0, "occlusion": 0.0}


def only(**options: Any) -> Augmentation:
    return Augmentation(**{**OFF, **options})


def generator_of(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def crops_of(batch: int = 8, low: int = 0, high: int = 256) -> torch.Tensor:
    return torch.randint(low, high, (batch, 3, 112, 112), generator=generator_of(9), dtype=torch.uint8)


def luma_of(crops: torch.Tensor) -> torch.Tensor:
    """In the order RGB."""
    return (crops.float() * torch.tensor(LUMA).view(3, 1, 1)).sum(1)


@pytest.mark.parametrize("augmentation", [Augmentation(), only(), only(**dict.fromkeys(OFF, 1.0))])
def test_bytes_of_the_same_shape_come_out_and_the_given_stay(augmentation: Augmentation) -> None:
    crops = crops_of()
    before = crops.clone()
    changed = augmentation.apply(crops, generator_of())
    assert changed.shape == crops.shape
    assert changed.dtype == torch.uint8
    assert changed.is_contiguous()
    assert torch.equal(crops, before)


def test_nothing_changes_without_a_chance() -> None:
    assert torch.equal(only().apply(crops_of(), generator_of()), crops_of())


def test_a_resumed_run_repeats_exactly() -> None:
    augmentation, generator = Augmentation(), generator_of()
    augmentation.apply(crops_of(), generator)
    state = generator.get_state()
    expected = [augmentation.apply(crops_of(batch), generator) for batch in (8, 5)]
    resumed = torch.Generator()
    resumed.set_state(state)
    again = [augmentation.apply(crops_of(batch), resumed) for batch in (8, 5)]
    assert all(torch.equal(*pair) for pair in zip(expected, again, strict=True))


def test_torchs_own_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    Augmentation().apply(crops_of(), generator_of())
    assert torch.equal(torch.get_rng_state(), state)


def test_flips_mirror_about_half_of_the_crops() -> None:
    crops = crops_of(1).expand(200, -1, -1, -1)
    changed = only(flip=0.5).apply(crops, generator_of())
    mirrored = (changed == crops.flip(-1)).flatten(1).all(1)
    kept = (changed == crops).flatten(1).all(1)
    assert torch.equal(mirrored, ~kept)
    assert 70 < mirrored.sum() < 130


def test_shifts_bring_black_in_and_differ_from_crop_to_crop() -> None:
    crops = crops_of(12, low=1)
    changed = only(shift=1.0, shift_pixels=2).apply(crops, generator_of())
    padded = functional.pad(crops, (2, 2, 2, 2))
    moves = set()
    for number in range(12):
        fitting = [
            (down, across)
            for down in range(5)
            for across in range(5)
            if torch.equal(padded[number, :, down : down + 112, across : across + 112], changed[number])
        ]
        assert len(fitting) == 1
        moves.update(fitting)
    assert len(moves) > 4


def test_brightness_is_one_factor_for_each_crop() -> None:
    crops = crops_of(low=40, high=180)
    changed = only(colour=1.0, brightness=0.3, contrast=0.0, saturation=0.0).apply(crops, generator_of())
    factors = changed.float() / crops.float()
    mean = factors.mean((1, 2, 3), keepdim=True)
    assert ((factors - mean).abs() < 0.02).all()
    assert ((mean > 0.69) & (mean < 1.31)).all()
    assert mean.std() > 0.05


def test_contrast_stretches_about_the_mean_brightness() -> None:
    crops = crops_of(low=90, high=160)
    changed = only(colour=1.0, brightness=0.0, contrast=0.5, saturation=0.0).apply(crops, generator_of())
    torch.testing.assert_close(luma_of(changed).mean((1, 2)), luma_of(crops).mean((1, 2)), atol=0.2, rtol=0)
    ratios = changed.float().std((2, 3)) / crops.float().std((2, 3))  # (batch, 3)
    torch.testing.assert_close(ratios, ratios[:, :1].expand(-1, 3), atol=0.01, rtol=0)
    assert ratios.min() < 0.8
    assert ratios.max() > 1.1


def test_saturation_keeps_the_brightness_of_every_pixel_in_the_order_rgb() -> None:
    crops = crops_of(low=90, high=160)
    changed = only(colour=1.0, brightness=0.0, contrast=0.0, saturation=0.5).apply(crops, generator_of())
    assert not torch.equal(changed, crops)
    torch.testing.assert_close(luma_of(changed), luma_of(crops), atol=0.51, rtol=0)


def test_low_resolution_is_shrinking_and_enlarging() -> None:
    crops = crops_of()
    changed = only(low_resolution=1.0, coarsest_side=30, finest_side=30).apply(crops, generator_of())
    shrunk = functional.adaptive_avg_pool2d(crops.float(), 30)
    expected = functional.interpolate(shrunk, size=112, mode="bilinear")
    torch.testing.assert_close(changed.float(), expected, atol=0.51, rtol=0)


def test_low_resolution_differs_from_crop_to_crop() -> None:
    crops = crops_of(1).expand(12, -1, -1, -1)
    changed = only(low_resolution=1.0).apply(crops, generator_of())
    assert len({crop.float().var().item() for crop in changed}) > 6


def test_occlusion_hides_a_rectangle_behind_noise_or_grey() -> None:
    crops = torch.full((40, 3, 112, 112), 100, dtype=torch.uint8)
    changed = only(occlusion=1.0, longest_occlusion=0.5).apply(crops, generator_of())
    flat = 0
    for crop in changed:
        rows, columns = (crop != 100).any(0).nonzero(as_tuple=True)
        height, width = rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
        assert min(height, width) >= 10
        assert max(height, width) <= 57
        cover = crop[:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert (cover != 100).float().mean() > 0.95  # the noise has a few grey pixels too
        flat += int(cover.unique().numel() == 1)
    assert 8 < flat < 32


@pytest.mark.parametrize(
    "options",
    [{"flip": 1.5}, {"occlusion": -0.1}, {"shift_pixels": -1}, {"coarsest_side": 60}, {"finest_side": 113}],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(RecipeRefused):
        Augmentation(**options)
