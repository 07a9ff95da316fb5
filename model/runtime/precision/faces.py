"""The faces on which a lower precision is proved: drawn ones that come with sameface, or the user's own."""

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import FolderRefused
from sameface.model.faces import Pixels

DRAWN = Path(__file__).with_name("drawn_faces.webp")  # people who do not exist, CROP x CROP pixels each
CROP = 112
FEWEST_FACES = 16  # the worst of fewer says little
MOST_FACES = 200  # a second or two of work


def load_faces(bundle: Bundle, folder: Path | None = None) -> Pixels:
    """Crops of the bundle's input size: those in `folder`, or the drawn ones if it is None."""
    crops = read_drawn() if folder is None else read_own(folder)
    if folder is None:
        crops = [crop.resize(bundle.contract.input_size, Image.Resampling.BILINEAR) for crop in crops]
    wrong = [crop.size for crop in crops if crop.size != bundle.contract.input_size]
    if wrong:
        (width, height), size = wrong[0], "{} x {}".format(*bundle.contract.input_size)
        raise FolderRefused(
            f"{folder} must have aligned crops of {size} pixels, as `sameface prepare` cuts them; one has"
            f" {width} x {height}."
        )
    return np.stack([np.asarray(crop) for crop in crops])


def read_drawn() -> list[Image.Image]:
    """The drawn faces, row by row of their sheet."""
    with Image.open(DRAWN) as file:
        sheet = file.convert("RGB")
    places = ((x, y) for y in range(0, sheet.height, CROP) for x in range(0, sheet.width, CROP))
    return [sheet.crop((x, y, x + CROP, y + CROP)) for x, y in places]


def read_own(folder: Path) -> list[Image.Image]:
    """The crops in a folder and its subfolders, at most MOST_FACES, evenly spaced; others are skipped."""
    paths = list_files(folder)
    spread = np.linspace(0, len(paths) - 1, min(MOST_FACES, len(paths))).round().astype(int)
    crops = []
    for path in (paths[place] for place in spread):
        try:
            with Image.open(path) as file:
                crops.append(file.convert("RGB"))
        except (OSError, ValueError, Image.DecompressionBombError):
            continue  # a list or a note beside the crops
    if len(crops) < FEWEST_FACES:
        raise FolderRefused(
            f"{folder} has {len(crops)} crops that can be read; a precision is proved on {FEWEST_FACES} or"
            " more."
        )
    return crops


def list_files(folder: Path) -> list[Path]:
    """The files in a folder and its subfolders, sorted."""
    if not folder.is_dir():
        raise FolderRefused(f"{folder} is no folder of crops.")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def name_faces(folder: Path | None) -> str:
    """A short name of the set of faces for cached graphs: other faces are another proof."""
    if folder is None:
        return "drawn"
    pixels = hashlib.sha256()
    for crop in read_own(folder):
        pixels.update(repr(crop.size).encode() + crop.tobytes())
    return pixels.hexdigest()[:8]
