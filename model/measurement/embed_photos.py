"""Embeds the pictures of a data set on several threads; failures are kept with their reasons."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sameface.model.errors import SamefaceError, UnsupportedImage
from sameface.model.faces import Floats
from sameface.model.observer import Progress
from sameface.model.parallel import work_through
from sameface.model.photo.image import decode_pixels, read_photo
from sameface.model.pipeline import Pipeline

Embed: TypeAlias = Callable[[bytes], Floats]


@dataclass(frozen=True, slots=True)
class Failure:
    """A picture without an embedding, and the code of the error."""

    file: str
    code: str


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedPictures:
    """The embeddings by picture name, in the order of the names, and the pictures that failed."""

    embeddings: dict[str, Floats]
    failed: list[Failure]
    digests: dict[str, str]  # the SHA-256 of each picture that could be read, by its name

    @property
    def count(self) -> int:
        """The number of pictures, failed ones included."""
        return len(self.embeddings) + len(self.failed)


def choose_embed(pipeline: Pipeline, *, aligned: bool) -> Embed:
    """The function that embeds a picture: `embed_crop` if pictures are aligned, else `embed_photo`."""
    embed = embed_crop if aligned else embed_photo
    return lambda picture: embed(pipeline, picture)


def embed_photo(pipeline: Pipeline, photo: bytes) -> Floats:
    """The embedding of the prominent face of a photo, as `/v1/verify` compares it."""
    return pipeline.embed_one_face(photo, "prominent").faces[0].embedding.values


def embed_crop(pipeline: Pipeline, photo: bytes) -> Floats:
    """The embedding of an aligned crop, which must have the recogniser's input size."""
    image, size = decode_pixels(photo, pipeline.options.limits), pipeline.embedder.bundle.contract.input_size
    if image.shape[1::-1] != size:
        raise UnsupportedImage(f"A crop must have {size[0]} x {size[1]} pixels.")
    return pipeline.embedder.embed([image])[0].values


def embed_all(
    pictures: Mapping[str, Path | bytes], embed: Embed, threads: int, progress: Progress
) -> EmbeddedPictures:
    """Embed the pictures, given by name as files or as their content; errors become failures."""

    found = EmbeddedPictures({}, [], {})

    def try_one(name: str) -> Floats | SamefaceError:
        picture = pictures[name]
        try:
            content = picture if isinstance(picture, bytes) else read_photo(picture)
            found.digests[name] = hashlib.sha256(content).hexdigest()
            return embed(content)
        except SamefaceError as error:
            return error

    with closing(work_through(try_one, pictures, threads)) as results:
        for name, result in zip(pictures, results, strict=True):
            if isinstance(result, SamefaceError):
                found.failed.append(Failure(name, result.code))
            else:
                found.embeddings[name] = result
            progress("embedding", found.count, len(pictures))
    return found
