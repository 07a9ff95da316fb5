"""The teacher's embeddings, computed once by the server's own code and cached."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np

from sameface.model.bundles.bundle import Bundle, load_bundle
from sameface.model.bundles.published import MODELS
from sameface.model.data_folder import DataFolder
from sameface.model.faces import Floats
from sameface.model.files import replacing
from sameface.model.observer import Progress
from sameface.model.photo.embed import open_embedder
from sameface.model.runtime.device import available_cores, select_device
from sameface.training.data.crop import CROP_SIDE
from sameface.training.data.face_set import FaceSet
from sameface.training.errors import RecipeRefused

BLOCK = 256  # crops that are read and embedded at a time


def find_teacher(name: str, folder: DataFolder) -> Bundle:
    """The bundle that a recipe names: a pulled published model, or a folder."""
    published = MODELS.get(name)
    home = folder.models / published.contract.name if published else Path(name).expanduser()
    bundle = load_bundle(home, "recogniser")
    if bundle.contract.input_size != (CROP_SIDE, CROP_SIDE):
        raise RecipeRefused(
            f"the teacher {name} takes {bundle.contract.input_size}, and crops are {CROP_SIDE}"
        )
    return bundle


def load_targets(faces: FaceSet, bundle: Bundle, folder: DataFolder, report: Progress) -> Floats:
    """The teacher's unit embeddings (images and blends, dimension), cached per bundle and face set."""
    file = folder.cache / f"teacher-{bundle.identity[:16]}-{faces.fingerprint()[:16]}.npy"
    if file.exists():
        return read_targets(file)
    targets = compute_targets(faces, bundle, folder, report)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as whole:
        np.save(whole, targets)
    return targets


def read_targets(file: Path) -> Floats:
    """Read cached embeddings."""
    try:
        targets: Floats = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise RecipeRefused(f"{file} is damaged: delete it, it will be made again.") from error
    return targets


def compute_targets(faces: FaceSet, bundle: Bundle, folder: DataFolder, report: Progress) -> Floats:
    """Embed every crop that `faces` returns, also those that replace unreadable ones."""
    threads = available_cores()
    targets = np.zeros((len(faces), bundle.contract.dimension or 0), np.float32)
    opening = open_embedder(bundle, select_device("auto"), folder.cache, threads)

    def embed(places: list[int]) -> None:
        crops = [faces.read(place)[0] for place in places]
        targets[places] = [embedding.values for embedding in embedder.embed(crops)]

    with closing(opening) as embedder, ThreadPoolExecutor(threads) as executor:
        for start in range(0, len(faces), BLOCK):
            block = range(start, min(start + BLOCK, len(faces)))
            list(executor.map(embed, [list(block[part::threads]) for part in range(threads)]))
            report("teacher", block.stop, len(faces))
    return targets
