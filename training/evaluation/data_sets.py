"""Test data: pairs in the format of LFW, InsightFace's .bin files, IJB's templates, and labelled folders."""

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sameface.model.faces import Floats, Keys
from sameface.model.measurement.embed_photos import Embed, Failure, embed_all
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.labelled_photos import LabelledFaces, read_labelled
from sameface.model.measurement.lfw_pairs import read_pairs
from sameface.model.measurement.scores import ListedPairs
from sameface.model.observer import Progress
from sameface.training.evaluation.ijb_templates import find_template_lists, read_templates


@dataclass(frozen=True, slots=True, eq=False)
class ListedFaces:
    """The pairs of a list with their similarities, and the photos that could not be embedded."""

    pairs: ListedPairs
    photos: int
    failed: list[Failure]
    drawn_over: str  # by the bootstrap: people if the list identifies them, else pairs
    digests: dict[str, str]  # the SHA-256 of each photo, by its name

    @property
    def people(self) -> int | None:
        """The number of people in the pairs, if the list identifies them."""
        both = np.concatenate([self.pairs.probes, self.pairs.references])
        return len(np.unique(both)) if self.drawn_over == "people" else None


Material = LabelledFaces | ListedFaces


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """Test data, and the function that reads it."""

    name: str
    kind: str
    aligned: bool  # its pictures are aligned crops
    read: Callable[[Embed, int, Progress], Material]
    lists: tuple[Path, ...] = ()  # the files that say which pictures are pairs

    def hash(self, material: Material) -> str:
        """The SHA-256 of the lines that `sha256sum` prints for pictures and lists, in the order of names."""
        listed = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in self.lists}
        lines = [f"{digest}  {name}\n" for name, digest in sorted((material.digests | listed).items())]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def open_data(path: Path, *, aligned: bool = False) -> EvaluationData:
    """Tell the kind of the data at `path` by the files that are there."""
    path = path.expanduser().absolute()
    if path.is_file():
        return EvaluationData(path.stem, "bin", True, lambda *how: read_bin(path, *how), (path,))
    if (pairs := path / "pairs.txt").is_file():
        return EvaluationData(path.name, "pairs", aligned, lambda *how: read_listed(path, *how), (pairs,))
    if lists := find_template_lists(path):
        faces, templates, images = lists
        return EvaluationData(
            path.name,
            "templates",
            aligned,
            lambda *how: read_template_pairs(faces, templates, images, *how),
            (faces, templates),
        )
    return EvaluationData(path.name, "labelled", aligned, lambda *how: read_labelled(path, *how))


def compare_listed(
    embeddings: Mapping[str, Floats], probes: Sequence[str], references: Sequence[str]
) -> Floats:
    """The similarity of each probe and reference, NaN where one has no embedding."""

    def compare(probe: str, reference: str) -> float:
        there = probe in embeddings and reference in embeddings
        return float(embeddings[probe] @ embeddings[reference]) if there else float("nan")

    return np.array(list(map(compare, probes, references)), np.float32)


def read_listed(folder: Path, embed: Embed, threads: int, progress: Progress) -> ListedFaces:
    """Embed and compare the pairs of `pairs.txt`, whose pictures are beside it or in `images`."""
    images = folder / "images" if (folder / "images").is_dir() else folder
    pairs = read_pairs(folder / "pairs.txt", images)
    probes = [str(pair.probe.relative_to(images)) for pair in pairs]
    references = [str(pair.reference.relative_to(images)) for pair in pairs]
    names = sorted({*probes, *references})
    found = embed_all({name: images / name for name in names}, embed, threads, progress)
    people = {who: number for number, who in enumerate(sorted({Path(name).parent.name for name in names}))}
    listed = ListedPairs(
        compare_listed(found.embeddings, probes, references),
        np.array([pair.same_person for pair in pairs]),
        np.array([people[pair.probe.parent.name] for pair in pairs]),
        np.array([people[pair.reference.parent.name] for pair in pairs]),
        np.array([pair.fold for pair in pairs]),
    )
    return ListedFaces(listed, found.count, found.failed, "people", found.digests)


FOLDS = 10  # of a .bin file, which does not number them


def read_bin(file: Path, embed: Embed, threads: int, progress: Progress) -> ListedFaces:
    """Embed and compare a verification set of InsightFace: two pictures and a flag per pair."""
    pictures, same = unpickle_bin(file)
    names = [str(number) for number in range(len(pictures))]
    found = embed_all(dict(zip(names, pictures, strict=True)), embed, threads, progress)
    each: Keys = np.arange(len(same))
    folds = each * FOLDS // len(same)
    pairs = ListedPairs(compare_listed(found.embeddings, names[::2], names[1::2]), same, each, each, folds)
    return ListedFaces(pairs, found.count, found.failed, "pairs", found.digests)


class PlainUnpickler(pickle.Unpickler):
    """Unpickles the lists, bytes, booleans and arrays of which .bin files consist, and nothing that runs."""

    ALLOWED: ClassVar = {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy", "bool_"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("_codecs", "encode"),
    }

    def find_class(self, module: str, name: str) -> Any:
        """Resolve a class only if it is in ALLOWED."""
        module = module.replace("numpy.core", "numpy._core")  # the name before numpy 2
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed here")
        return super().find_class(module, name)


def unpickle_bin(file: Path) -> tuple[list[bytes], "np.ndarray[Any, np.dtype[np.bool_]]"]:
    """The encoded pictures, and for each two of them whether they show one person."""
    try:
        pictures, same = PlainUnpickler(io.BytesIO(file.read_bytes()), encoding="bytes").load()
        content = [bytes(picture) for picture in pictures]
        flags = np.array([bool(flag) for flag in same])
    except Exception as error:  # a damaged pickle may raise anything
        raise PairsRefused(f"{file} is no verification set of InsightFace: {error}.") from error
    if not len(flags) or len(content) != 2 * len(flags):
        raise PairsRefused(f"{file} must have two pictures for each of its {len(flags)} pairs.")
    return content, flags


def read_template_pairs(
    faces: Path, pairs: Path, images: Path, embed: Embed, threads: int, progress: Progress
) -> ListedFaces:
    """Embed and compare the pairs of templates that IJB lists, each template of several pictures."""
    templates = read_templates(faces, pairs)
    pictures = {name: images / name for name in templates.pictures}
    found = embed_all(pictures, embed, threads, progress)
    listed = templates.compare(found.embeddings)
    return ListedFaces(listed, found.count, found.failed, "people", found.digests)
