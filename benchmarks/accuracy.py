"""How accurate is the pipeline, from photo to decision, next to OpenCV's own on the same weights?

python -m benchmarks.accuracy LFW_FOLDER [--data ~/.sameface]
"""

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.rivals.opencv import OpenCvPath
from benchmarks.shared.lfw import read_lfw
from sameface.model.data_folder import DataFolder
from sameface.model.measurement.lfw_pairs import Pair, measure_accuracy
from sameface.model.pipeline import Pipeline, PipelineOptions, open_pipeline

Embed = Callable[[bytes], Any | None]


def main() -> None:
    """Score every pair with sameface and with OpenCV, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    pairs = read_lfw(options.lfw)
    pipeline = open_from(options.data)
    opencv = OpenCvPath(pipeline.detector.bundle.path, pipeline.embedder.bundle.path)

    table = Table(
        "path", "5-fold accuracy", "wrong", "no face", "FNMR at 0.363", "FMR at 0.363", title="lfw_dev"
    )
    for policy in ("prominent", "largest"):
        similarities = score(pairs, partial(first_face, pipeline, policy), threads=pipeline.queue.threads)
        table.add_row(f"sameface, {policy}", *describe(pairs, similarities))
    table.add_row(
        f"OpenCV {cv2.__version__}, nearest the centre",
        *describe(pairs, score(pairs, opencv.embed, threads=1)),
    )
    Console(width=110).print(table)
    pipeline.close()


def open_from(data: Path) -> Pipeline:
    """The default pipeline, with the bundles of the data folder `data`."""
    return open_pipeline(PipelineOptions.in_folder(DataFolder(data)))


def first_face(pipeline: Pipeline, policy: str, photo: bytes) -> Any | None:
    """The embedding of the face that `policy` chooses, as in /v1/verify, or None without a face."""
    faces = pipeline.embed_faces(photo, policy).faces
    return faces[0].embedding.values if faces else None


def score(pairs: list[Pair], embed: Embed, *, threads: int) -> list[float]:
    """The similarity of every pair, NaN where a photo has no face."""
    photos = sorted({path for pair in pairs for path in (pair.probe, pair.reference)})
    with ThreadPoolExecutor(threads) as executor:
        results = executor.map(lambda path: embed(path.read_bytes()), photos)
        embeddings = dict(zip(photos, track(results, total=len(photos), transient=True), strict=True))
    return [similarity(embeddings[pair.probe], embeddings[pair.reference]) for pair in pairs]


def similarity(probe: Any | None, reference: Any | None) -> float:
    """The cosine of two embeddings, or NaN if one of them is None."""
    return float("nan") if probe is None or reference is None else float(probe @ reference)


def describe(pairs: list[Pair], similarities: Iterable[float]) -> list[str]:
    """The figures of a row of the table."""
    scores = np.array(list(similarities))
    same = np.array([pair.same_person for pair in pairs])
    measured = measure_accuracy(scores, pairs)
    missed, matched = np.mean(~(scores[same] >= 0.363)), np.mean(scores[~same] >= 0.363)
    return [
        f"{measured.accuracy:.2%}",
        f"{measured.wrong} of {measured.pairs}",
        f"{measured.missing}",
        f"{missed:.2%}",
        f"{matched:.2%}",
    ]


if __name__ == "__main__":
    main()
