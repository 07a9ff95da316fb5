"""IJB-B's and IJB-C's templates: pictures and video frames of a person that are compared as one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sameface.model.faces import Floats, Keys
from sameface.model.measurement.errors import PairsRefused
from sameface.model.measurement.scores import Flags, ListedPairs

Lists = tuple[Path, Path, Path]


def find_template_lists(folder: Path) -> Lists | None:
    """`*face_tid_mid.txt`, `*template_pair_label.txt` and the folder of pictures; None without the lists."""
    for place in (folder, folder / "meta"):
        faces = sorted(place.glob("*face_tid_mid.txt"))
        pairs = sorted(place.glob("*template_pair_label.txt"))
        if faces and pairs:
            images = [folder / name for name in ("loose_crop", "images") if (folder / name).is_dir()]
            return faces[0], pairs[0], images[0] if images else folder
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Templates:
    """The template and medium of each picture, and the pairs of templates to compare."""

    pictures: list[str]
    owners: Keys  # the template of each picture
    media: Keys  # the photo, or the video that a frame is from
    probes: Keys  # templates
    references: Keys
    same: Flags

    def compare(self, embedded: dict[str, Floats]) -> ListedPairs:
        """The similarity of each pair of templates, NaN where one has no face."""
        templates = np.unique(np.concatenate([self.probes, self.references]))
        fused = self.fuse(embedded)
        missing = next(iter(fused.values())) * np.nan if fused else np.full(1, np.nan, np.float32)
        embeddings = np.stack([fused.get(int(template), missing) for template in templates])
        probes, references = (np.searchsorted(templates, side) for side in (self.probes, self.references))
        people = join_people(len(templates), probes[self.same], references[self.same])
        return ListedPairs(
            np.einsum("ij,ij->i", embeddings[probes], embeddings[references]),
            self.same,
            people[probes],
            people[references],
            np.zeros(len(self.same), np.int64),
        )

    def fuse(self, embedded: dict[str, Floats]) -> dict[int, Floats]:
        """One unit embedding per template: the mean of its media, each the mean of its pictures."""
        media: dict[tuple[int, int], list[Floats]] = {}
        for picture, owner, medium in zip(self.pictures, self.owners, self.media, strict=True):
            if picture in embedded:
                media.setdefault((int(owner), int(medium)), []).append(embedded[picture])
        sums: dict[int, Floats] = {}
        for (owner, _), members in media.items():
            sums[owner] = sums.get(owner, np.float32(0)) + np.mean(members, axis=0)
        return {owner: total / np.linalg.norm(total) for owner, total in sums.items()}


def join_people(templates: int, probes: Keys, references: Keys) -> Keys:
    """The person of each template, by union-find: the two templates of a genuine pair show one person."""
    people = list(range(templates))

    def find(template: int) -> int:
        while people[template] != template:
            people[template] = people[people[template]]
            template = people[template]
        return template

    for probe, reference in zip(probes.tolist(), references.tolist(), strict=True):
        people[find(probe)] = find(reference)
    _, numbers = np.unique([find(template) for template in range(templates)], return_inverse=True)
    return numbers.astype(np.int64)


def read_templates(faces: Path, pairs: Path) -> Templates:
    """Read the lines `picture template medium` of `faces` and `template template label` of `pairs`."""
    pictures, owners, media = zip(*read_columns(faces), strict=True)
    probes, references, labels = zip(*read_columns(pairs), strict=True)
    try:
        numbers = [np.array(list(map(int, column))) for column in (owners, media, probes, references, labels)]
    except ValueError as error:
        raise PairsRefused(f"{faces} and {pairs} must number templates and media: {error}.") from error
    owner, medium, probe, reference, label = numbers
    return Templates(list(pictures), owner, medium, probe, reference, label == 1)


def read_columns(file: Path) -> list[list[str]]:
    """The lines of a file, three words each."""
    try:
        rows = [line.split() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise PairsRefused(f"{file} cannot be read: {error}.") from error
    if not rows or any(len(row) != 3 for row in rows):
        raise PairsRefused(f"{file} must have lines of three words.")
    return rows
