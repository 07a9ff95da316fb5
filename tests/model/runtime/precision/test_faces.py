"""The faces of a proof: drawn ones that ship, and a user's own."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import FolderRefused
from sameface.model.runtime.precision.faces import load_faces, name_faces, read_drawn
from sameface.training.data.synthetic.people import invent_person, invent_shot
from sameface.training.data.synthetic.portrait import draw_portrait


def write_crops(folder: Path, count: int, side: int = 112) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for number in range(count):
        pixels = random.integers(0, 256, (side, side, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def test_the_sheet_holds_people_who_do_not_exist() -> None:
    """Each is what `sameface synthesize` draws, but for the compression."""
    for number, crop in enumerate(read_drawn()):
        person = invent_person(np.random.default_rng((0, number, 0)))
        shot = invent_shot(np.random.default_rng((0, number, 1)))
        drawn = draw_portrait(person, shot).astype(int)
        assert np.abs(np.asarray(crop) - drawn).mean() < 10


def test_drawn_faces_fit_any_input(bundle: Bundle) -> None:
    assert load_faces(bundle).shape == (64, 112, 112, 3)
    wide = replace(bundle, contract=replace(bundle.contract, input_size=(96, 128)))
    assert load_faces(wide).shape == (64, 128, 96, 3)


def test_own_crops_are_read_whatever_lies_beside_them(bundle: Bundle, tmp_path: Path) -> None:
    folder = write_crops(tmp_path / "own", 20)
    (folder / "labels.csv").write_text("1,2\n")
    crops = load_faces(bundle, folder)
    assert crops.shape == (20, 112, 112, 3)
    assert np.array_equal(crops[0], np.asarray(Image.open(folder / "0.png")))


def test_too_few_or_wrong_crops_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match=r"has 5 crops that can be read; .* 16 or more"):
        load_faces(bundle, write_crops(tmp_path / "few", 5))
    with pytest.raises(FolderRefused, match=r"112 x 112 pixels, .* one has 200 x 200"):
        load_faces(bundle, write_crops(tmp_path / "large", 20, side=200))
    with pytest.raises(FolderRefused, match="is no folder of crops"):
        load_faces(bundle, tmp_path / "missing")


def test_other_faces_are_another_proof(tmp_path: Path) -> None:
    folder = write_crops(tmp_path / "own", 16)
    before = name_faces(folder)
    assert before == name_faces(folder) != name_faces(None)
    write_crops(folder, 17)
    assert name_faces(folder) != before


def test_other_pixels_in_files_of_the_same_names_and_sizes_are_another_proof(tmp_path: Path) -> None:
    folder, moved = tmp_path / "own", tmp_path / "moved"
    folder.mkdir()
    for number in range(16):
        Image.new("RGB", (112, 112), (number, 0, 0)).save(folder / f"{number:02}.bmp")
    before = name_faces(folder)
    shutil.copytree(folder, moved)
    assert name_faces(moved) == before
    Image.new("RGB", (112, 112), (0, 1, 0)).save(folder / "03.bmp")
    assert name_faces(folder) != before
