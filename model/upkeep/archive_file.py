"""A collection as a file: gzip of JSON lines, with a version and a checksum.

The first line is a header, each of the next ones a person with all faces, by ascending id, and the last one
has the numbers of people and faces and the SHA-256 of all lines before it.
"""

import base64
import gzip
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sameface.model.faces import are_unit
from sameface.model.store.records import (
    LAST_TIME,
    MAX_NAME,
    MOST_REVIEWERS,
    Binding,
    Collection,
    NewFace,
    NewPerson,
    find_metadata_fault,
    is_id,
    is_text,
)
from sameface.model.upkeep.errors import ArchiveRefused

KIND, VERSION = "collection", 1
COMPRESSION = 6
MAX_LINE_BYTES = 100_000_000  # of one person: some three thousand crops
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the collection's name, recogniser and settings."""

    name: str
    model: str
    identity: str
    dimension: int
    store_crops: bool
    calibration: str | None
    reviewers: int

    def __post_init__(self) -> None:
        need(all(isinstance(text, str) for text in (self.name, self.model, self.identity)), "name and model")
        need(type(self.dimension) is int and self.dimension > 0, "dimension")
        need(isinstance(self.store_crops, bool), "store_crops")
        need(isinstance(self.calibration, str | None), "calibration")
        need(type(self.reviewers) is int and 0 <= self.reviewers <= MOST_REVIEWERS, "reviewers")

    @classmethod
    def of(cls, collection: Collection) -> "Header":
        """The header of a collection's archive."""
        return cls(
            collection.name,
            collection.bundle,
            collection.identity,
            collection.dimension,
            collection.store_crops,
            collection.calibration,
            collection.reviewers,
        )

    @property
    def binding(self) -> Binding:
        """The binding of the collection that is imported from the archive."""
        return Binding(
            bundle=self.model,
            identity=self.identity,
            dimension=self.dimension,
            store_crops=self.store_crops,
            calibration=self.calibration,
            reviewers=self.reviewers,
        )


# Writing.


def write_archive(file: BinaryIO, header: Header, people: Iterable[NewPerson]) -> None:
    """Write the header, the people one at a time, and the line with the checksum."""
    digest, count = hashlib.sha256(), {"people": 0, "faces": 0}
    with gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as packed:

        def put(line: dict[str, Any]) -> None:
            content = json.dumps(line).encode() + b"\n"
            digest.update(content)
            packed.write(content)

        put({"sameface": KIND, "version": VERSION} | asdict(header))
        for person in people:
            put(describe_person(person))
            count = {"people": count["people"] + 1, "faces": count["faces"] + len(person.faces)}
        put(count | {"sha256": digest.hexdigest()})


def describe_person(person: NewPerson) -> dict[str, Any]:
    """A person as the JSON object of a line."""
    return {
        "person_id": person.person_id,
        "name": person.name,
        "metadata": person.metadata,
        "created_at": person.created_at,
        "faces": [
            {
                "face_id": face.face_id,
                "embedding": base64.b64encode(face.embedding.astype("<f4").tobytes()).decode(),
                "quality": face.quality,
                "photo": face.photo,
                "crop": base64.b64encode(face.crop).decode() if face.crop else None,
                "created_at": face.created_at,
                "details": face.details,
            }
            for face in person.faces
        ],
    }


# Reading.


def read_archive(path: Path) -> tuple[Header, Iterator[NewPerson]]:
    """The header, and an iterator over the people, which checks the checksum only when it reaches the end."""
    lines = read_lines(path)
    first = next(lines, b"")
    header = read_header(path, first)
    return header, read_people(path, lines, header, hashlib.sha256(first))


def read_lines(path: Path) -> Iterator[bytes]:
    """The decompressed lines."""
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise ArchiveRefused(f"{path} has a line of more than {MAX_LINE_BYTES} bytes.")
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ArchiveRefused(f"{path} is damaged or cut short: copy or export it again.") from error
    except OSError as error:
        raise ArchiveRefused(f"{path} cannot be read: {error.strerror}.") from error


def read_header(path: Path, line: bytes) -> Header:
    """The header in the first line; raises if it is no archive or of another version."""
    try:
        found = json.loads(line)
        need(found["sameface"] == KIND, "kind")
        version = found["version"]
        if version != VERSION:
            raise ArchiveRefused(
                f"{path} is of version {version}, this sameface reads {VERSION}: install a newer one."
            )
        found.setdefault("reviewers", 0)  # 0.1.0 had none
        return Header(**{field.name: found[field.name] for field in fields(Header)})
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArchiveRefused(
            f"{path} is no archive of a collection: `sameface export` writes one."
        ) from error


def read_people(
    path: Path, lines: Iterator[bytes], header: Header, digest: "hashlib._Hash"
) -> Iterator[NewPerson]:
    """The people in the lines after the header; raises if the checksum is missing or wrong."""
    people, faces, last = 0, 0, ""
    for number, line in enumerate(lines, 2):
        try:
            found = json.loads(line)
            if "sha256" in found:
                expected = {"people": people, "faces": faces, "sha256": digest.hexdigest()}
                need(found == expected, "checksum")
                need(next(lines, None) is None, "end")
                return
            person = read_person(found, header)
            need(person.person_id > last, "order")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ArchiveRefused(
                f"Line {number} of {path} is not as it was written ({error}): copy or export it again."
            ) from error
        digest.update(line)
        people, faces, last = people + 1, faces + len(person.faces), person.person_id
        yield person
    raise ArchiveRefused(f"{path} is cut short: copy or export it again.")


def read_person(found: dict[str, Any], header: Header) -> NewPerson:
    """A person to enrol, from the JSON object of a line; raises if a field is invalid."""
    person = NewPerson(
        found["person_id"],
        [read_face(face, header) for face in found["faces"]],
        found["name"],
        found["metadata"],
        created_at=found["created_at"],
    )
    need(is_id(person.person_id), "person_id")
    need(person.name is None or is_text(person.name, MAX_NAME), "name")
    need(find_metadata_fault(person.metadata) is None, "metadata")
    need(is_time(person.created_at), "created_at")
    return person


def read_face(found: dict[str, Any], header: Header) -> NewFace:
    """A face to enrol, from its JSON object; raises if a field is invalid."""
    crop = found["crop"] and base64.b64decode(found["crop"], validate=True)
    embedding = np.frombuffer(base64.b64decode(found["embedding"], validate=True), "<f4")
    face = NewFace(
        found["face_id"],
        embedding,
        found["quality"],
        found["photo"],
        crop,
        created_at=found["created_at"],
        details=found.get("details"),  # which archives of before do not have
    )
    need(is_id(face.face_id), "face_id")
    need(embedding.shape == (header.dimension,) and are_unit(embedding[None]).all(), "embedding")
    need(face.quality is None or is_number(face.quality), "quality")
    need(isinstance(face.photo, str | None), "photo")
    need(crop is None or (header.store_crops and crop.startswith(PNG)), "crop")
    need(is_time(face.created_at), "created_at")
    need(face.details is None or find_metadata_fault(face.details) is None, "details")
    return face


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def is_time(value: Any) -> bool:
    """Whether `value` is a Unix time that a calendar has."""
    return is_number(value) and 0 <= value < LAST_TIME


def need(fits: object, what: str) -> None:
    """Raise a ValueError that names the field `what`, unless it `fits`."""
    if not fits:
        raise ValueError(what)
