"""Probes to search for, together as one block: their embeddings are rows of one array."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sameface.model.errors import InvalidEmbedding, SamefaceError
from sameface.model.faces import Embedding, Floats, Photo
from sameface.model.photo.embed import NO_DIRECTION, scale_rows

Probe: TypeAlias = Photo | Embedding


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """A block of probes: each of its `count` places has an embedding, a photo, or why it has neither."""

    count: int
    places: NDArray[np.intp]  # (embeddings,), ascending
    embeddings: Floats  # (embeddings, dimension), of length 1
    normalised: NDArray[np.bool_]  # (embeddings,): sent at another length than 1
    photos: Mapping[int, Photo]  # by place
    errors: Mapping[int, SamefaceError]  # by place

    @classmethod
    def of(cls, probes: Sequence[Probe | SamefaceError]) -> "Probes":
        """The block of `probes`, one per place."""
        embeddings: dict[int, Embedding] = {}
        photos: dict[int, Photo] = {}
        errors: dict[int, SamefaceError] = {}
        for place, probe in enumerate(probes):
            if isinstance(probe, Embedding):
                embeddings[place] = probe
            elif isinstance(probe, SamefaceError):
                errors[place] = probe
            else:
                photos[place] = probe
        values = np.array([embedding.values for embedding in embeddings.values()], np.float32)
        normalised = np.array([embedding.normalised for embedding in embeddings.values()], bool)
        return cls(len(probes), np.array(list(embeddings), np.intp), values, normalised, photos, errors)

    @classmethod
    def of_rows(
        cls,
        count: int,
        places: NDArray[np.intp],
        rows: Floats,
        photos: Mapping[int, Photo],
        errors: Mapping[int, SamefaceError],
    ) -> "Probes":
        """The block of embeddings as they were sent, `rows`; one without a direction becomes an error."""
        units, normalised, sound = scale_rows(rows)
        unsound = {int(place): InvalidEmbedding(NO_DIRECTION) for place in places[~sound]}
        return cls(count, places[sound], units[sound], normalised[sound], photos, {**errors, **unsound})
