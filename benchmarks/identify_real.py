"""How well are people identified, on real photos?

Of the people with two or more photos one photo each is enrolled, and their others are probes that have a mate
in the gallery; the photos of people with a single one are probes that have none.

    python -m benchmarks.identify_real LFW_FOLDER [--data ~/.sameface]
"""

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.accuracy import open_from
from model.faces import Embedding
from model.gallery import Candidate, Gallery
from model.pipeline import Pipeline
from model.records import NewFace, NewPerson

LIMIT = 10
THRESHOLDS = (0.30, 0.363, 0.40, 0.45, 0.50)


def main() -> None:
    """Enrol, search, and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("lfw", type=Path)
    arguments.add_argument("--data", type=Path, default=Path("~/.sameface").expanduser())
    options = arguments.parse_args()
    people = {folder.name: sorted(folder.iterdir()) for folder in sorted((options.lfw / "images").iterdir())}
    pipeline = open_from(options.data)
    embeddings = embed_all(pipeline, [path for paths in people.values() for path in paths])
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(Path(folder) / "gallery.db", pipeline.embedder.bundle)
        results = search_all(gallery, people, embeddings)
        gallery.close()
    pipeline.close()
    print_table(*results)


def embed_all(pipeline: Pipeline, paths: list[Path]) -> dict[Path, Embedding]:
    """The prominent face of every photo that has one."""

    def embed(path: Path) -> Embedding | None:
        faces = pipeline.embed_faces(path.read_bytes(), "prominent").faces
        return faces[0].embedding if faces else None

    with ThreadPoolExecutor(pipeline.options.threads) as executor:
        found = track(executor.map(embed, paths), total=len(paths), transient=True)
        return {path: embedding for path, embedding in zip(paths, found, strict=True) if embedding}


Probes = list[tuple[str, list[Candidate]]]


def search_all(
    gallery: Gallery, people: dict[str, list[Path]], embeddings: dict[Path, Embedding]
) -> tuple[Probes, Probes, int]:
    """Who each probe is and what was found for it: with a mate, without one, and the gallery's size."""
    collection, _ = gallery.create_collection("lfw")
    enrolled = {name: paths for name, paths in people.items() if len(paths) > 1 and paths[0] in embeddings}
    gallery.enrol(
        collection,
        [
            NewPerson(f"p{number}", [NewFace(f"f{number}", embeddings[paths[0]].values)], name)
            for number, (name, paths) in enumerate(enrolled.items())
        ],
    )
    mated = [(name, path) for name, paths in enrolled.items() for path in paths[1:] if path in embeddings]
    unmated = [
        (name, paths[0]) for name, paths in people.items() if len(paths) == 1 and paths[0] in embeddings
    ]
    found = gallery.search(collection, [embeddings[path] for _, path in (*mated, *unmated)], LIMIT)
    named = [(name, candidates) for (name, _), candidates in zip((*mated, *unmated), found, strict=True)]
    return named[: len(mated)], named[len(mated) :], len(enrolled)


def print_table(mated: Probes, unmated: Probes, size: int) -> None:
    """FNIR and FPIR at some thresholds; rank-1 is what a threshold of -1 would give."""
    first = sum(candidates[0].name == name for name, candidates in mated)
    table = Table("threshold", "FNIR", "FPIR")
    for threshold in THRESHOLDS:
        missed = sum(not is_match(name, candidates, threshold) for name, candidates in mated)
        false = sum(candidates[0].similarity >= threshold for _, candidates in unmated)
        table.add_row(f"{threshold:g}", f"{missed / len(mated):.2%}", f"{false / len(unmated):.2%}")
    console = Console(width=110)
    console.print(f"{size} people enrolled, {len(mated)} mated and {len(unmated)} unmated probes")
    console.print(f"right person first: {first / len(mated):.2%}")
    console.print(table)


def is_match(name: str, candidates: list[Candidate], threshold: float) -> bool:
    """Whether the right person comes first and passes."""
    return candidates[0].name == name and candidates[0].similarity >= threshold


if __name__ == "__main__":
    main()
