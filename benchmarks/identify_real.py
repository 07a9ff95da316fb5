"""How well are people identified, on real photos?

People with two or more photos are enrolled by their first; their other photos are the mated probes, and the
photos of people with a single one are the unmated probes. Then people with three or more photos are enrolled
by all but their last, to compare the fusions `max` and `mean`.

    python -m benchmarks.identify_real LFW_FOLDER [--data ~/.sameface]
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.accuracy import open_from
from sameface.model.faces import Embedding
from sameface.model.gallery.candidates import Candidate
from sameface.model.gallery.gallery import Gallery
from sameface.model.pipeline import Pipeline
from sameface.model.store.records import NewFace, NewPerson

LIMIT = 10
THRESHOLDS = (0.30, 0.363, 0.40, 0.45, 0.50)
FPIR = 0.01  # at which the fusions are compared

Faces = Mapping[str, Sequence[Embedding]]  # name of a person: embeddings of their faces


@dataclass(frozen=True, slots=True)
class Found:
    """The name of the person in a probe, and the candidates that were found."""

    name: str
    candidates: list[Candidate]

    def is_match(self, threshold: float) -> bool:
        """Whether the right person comes first, at `threshold` or above."""
        return self.candidates[0].name == self.name and self.candidates[0].similarity >= threshold


def main() -> None:
    """Enrol, search, and print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    with closing(open_from(options.data)) as pipeline, tempfile.TemporaryDirectory() as folder:
        people = embed_all(pipeline, options.lfw / "images")
        strangers = {name: faces for name, faces in people.items() if len(faces) == 1}
        with closing(Gallery(Path(folder) / "gallery.db", pipeline.embedder.bundle)) as gallery:
            console = Console(width=110)
            compare_thresholds(gallery, people, strangers, console)
            compare_fusions(gallery, people, strangers, console)


def embed_all(pipeline: Pipeline, folder: Path) -> Faces:
    """The embedding of the prominent face of every photo that has one, by person."""

    def embed(path: Path) -> tuple[str, list[Embedding]]:
        faces = pipeline.embed_faces(path.read_bytes(), "prominent").faces
        return path.parent.name, [face.embedding for face in faces]

    paths = sorted(folder.glob("*/*"))
    people: dict[str, list[Embedding]] = {}
    with ThreadPoolExecutor(pipeline.options.threads) as executor:
        for name, faces in track(executor.map(embed, paths), total=len(paths), transient=True):
            people.setdefault(name, []).extend(faces)
    return people


def search(gallery: Gallery, collection: str, enrolled: Faces, probes: Faces, fusion: str) -> list[Found]:
    """The candidates for each probe in `collection`; a new collection is first filled with `enrolled`."""
    made, new = gallery.create_collection(collection)
    if new:
        gallery.enroll(
            made,
            [
                NewPerson(
                    f"p{number}",
                    [NewFace(f"{number}-{n}", face.values) for n, face in enumerate(faces)],
                    name,
                )
                for number, (name, faces) in enumerate(enrolled.items())
            ],
        )
    asked = [(name, face) for name, faces in probes.items() for face in faces]
    now = gallery.get_collection(collection)
    embeddings = np.stack([face.values for _, face in asked])
    candidates = gallery.search(now, embeddings, LIMIT, fusion).by_probe()
    return [Found(name, found) for (name, _), found in zip(asked, candidates, strict=True)]


def compare_thresholds(gallery: Gallery, people: Faces, strangers: Faces, console: Console) -> None:
    """Print FNIR and FPIR by threshold, and the rank-1 rate, with one photo enrolled per person."""
    several = {name: faces for name, faces in people.items() if len(faces) > 1}
    enrolled = {name: faces[:1] for name, faces in several.items()}
    mated = search(gallery, "one", enrolled, {name: faces[1:] for name, faces in several.items()}, "max")
    unmated = search(gallery, "one", enrolled, strangers, "max")
    first = np.mean([found.is_match(-1) for found in mated])
    table = Table("threshold", "FNIR", "FPIR")
    for threshold in THRESHOLDS:
        missed = np.mean([not found.is_match(threshold) for found in mated])
        false = np.mean([found.candidates[0].similarity >= threshold for found in unmated])
        table.add_row(f"{threshold:g}", f"{missed:.2%}", f"{false:.2%}")
    console.print(
        f"{len(enrolled)} people by one photo, {len(mated)} mated and {len(unmated)} unmated probes"
    )
    console.print(f"right person first: {first:.2%}", table)


def compare_fusions(gallery: Gallery, people: Faces, strangers: Faces, console: Console) -> None:
    """Print the FNIR of max and mean at the same FPIR, with several photos enrolled per person."""
    several = {name: faces for name, faces in people.items() if len(faces) > 2}
    enrolled = {name: faces[:-1] for name, faces in several.items()}
    probes = {name: faces[-1:] for name, faces in several.items()}
    table = Table("fusion", "right person first", f"threshold at FPIR {FPIR:.0%}", "FNIR there")
    for fusion in ("max", "mean"):
        unmated = search(gallery, "several", enrolled, strangers, fusion)
        mated = search(gallery, "several", enrolled, probes, fusion)
        threshold = float(np.quantile([found.candidates[0].similarity for found in unmated], 1 - FPIR))
        first = np.mean([found.is_match(-1) for found in mated])
        missed = np.mean([not found.is_match(threshold) for found in mated])
        table.add_row(fusion, f"{first:.2%}", f"{threshold:.3f}", f"{missed:.2%}")
    faces = sum(len(held) for held in enrolled.values())
    console.print(
        f"{len(enrolled)} people by {faces} photos, a probe of each, {len(strangers)} strangers", table
    )


if __name__ == "__main__":
    main()
