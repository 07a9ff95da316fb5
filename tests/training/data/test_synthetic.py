"""Drawn identities: where they are, that they repeat, and that the face alone tells who it is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.published import ARCFACE_TEMPLATE
from sameface.training.data.synthetic.people import invent_person, invent_shot, write_identities
from sameface.training.data.synthetic.portrait import (
    BEARDS,
    GLASSES_STYLES,
    HAIR_STYLES,
    draw_portrait,
    find_landmarks,
)


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.png"))}


@pytest.fixture(scope="module")
def crops() -> np.ndarray:
    """Of twenty people, (20, 6, 112, 112, 3)."""
    random = np.random.default_rng(0)
    people = [invent_person(random) for _ in range(20)]
    return np.array([[draw_portrait(person, invent_shot(random)) for _ in range(6)] for person in people])


def tell_apart(parts: np.ndarray) -> float:
    """The share of each person's last three parts that are nearest to the mean of their first three."""
    people, images = parts.shape[:2]
    parts = parts.reshape(people, images, -1).astype(float)
    parts = parts - parts.mean(-1, keepdims=True)
    parts /= parts.std(-1, keepdims=True)  # or exposure would say something
    known, probes = parts[:, :3].mean(1), parts[:, 3:]
    nearest = ((probes[:, :, None] - known) ** 2).sum(-1).argmin(-1)  # (people, probes)
    return float((nearest == np.arange(people)[:, None]).mean())


def test_every_person_has_a_folder_of_crops(tmp_path: Path) -> None:
    write_identities(tmp_path / "new" / "set", people=2, images=3, seed=1)
    found = read_all(tmp_path / "new" / "set")
    assert list(found) == [
        f"{person}/{person}_{image}.png" for person in ("0000", "0001") for image in ("0000", "0001", "0002")
    ]
    with Image.open(tmp_path / "new" / "set" / "0001" / "0001_0002.png") as crop:
        assert (crop.size, crop.mode) == ((112, 112), "RGB")


def test_the_seed_decides_every_byte_and_a_larger_set_contains_the_smaller(tmp_path: Path) -> None:
    write_identities(tmp_path / "small", people=2, images=2, seed=7)
    write_identities(tmp_path / "large", people=3, images=4, seed=7)
    write_identities(tmp_path / "other", people=2, images=2, seed=8)
    small, large, other = (read_all(tmp_path / name) for name in ("small", "large", "other"))
    assert small.items() <= large.items()
    assert len(set(large.values())) == 12
    assert not set(small.values()) & set(other.values())


def test_landmarks_are_near_the_template() -> None:
    random = np.random.default_rng(3)
    gaps = np.array(
        [
            np.subtract(find_landmarks(invent_person(random), invent_shot(random)), ARCFACE_TEMPLATE)
            for _ in range(200)
        ]
    )  # (200, 5, 2)
    away = np.hypot(gaps[..., 0], gaps[..., 1])
    assert away.mean() < 4
    assert np.percentile(away, 99) < 10
    assert np.abs(gaps.mean(0)).max() < 2  # no landmark is off to one side


def test_the_face_says_who_it_is(crops: np.ndarray) -> None:
    assert tell_apart(crops[:, :, 20:, 25:88]) > 0.7


def test_the_surroundings_do_not(crops: np.ndarray) -> None:
    assert tell_apart(crops[:, :, :, :3]) < 0.2
    assert tell_apart(crops[:, :, 104:, :8]) < 0.2


@pytest.mark.parametrize("hair", HAIR_STYLES)
@pytest.mark.parametrize("beard", sorted(set(BEARDS)))
def test_no_style_covers_the_eyes(hair: str, beard: str) -> None:
    """The pupils are the darkest and the whites the lightest near an eye, in a frontal photo."""
    random = np.random.default_rng(5)
    for glasses in GLASSES_STYLES[2:]:
        person = replace(invent_person(random), hair=hair, beard=beard, glasses=glasses)
        shot = replace(invent_shot(random), yaw=0.0, nod=0.0, lids=1.0, noise=0.0, light=0j)
        crop = draw_portrait(person, shot).mean(-1)
        for x, y in find_landmarks(person, shot)[:2]:
            eye = crop[round(y) - 2 : round(y) + 3, round(x) - 5 : round(x) + 6]
            assert np.ptp(eye) > 60
