"""What a feeder has sent to Milvus of a collection, and what it sends at once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sameface.model.store.records import FaceBlock, FaceChanges, Feed


@dataclass(slots=True, eq=False)
class Sent:
    """What this process has sent of a collection."""

    feed: Feed  # as it is in the store
    sequence: int  # the last change that was sent
    twice: int = 0  # up to this change, an earlier feeder may have sent it before
    swept: int = 0  # up to this change, Milvus had the faces of the store
    pieces: Iterator[FaceChanges] | None = None  # what is to be sent next, while it is sent
    marks: list[tuple[float, Feed]] = field(default_factory=list)  # sent, and not yet old enough to rely on


class FedElsewhere(Exception):
    """This process has lost its lock, or a feed was changed by another one, which must be feeding, too."""


def take(pieces: Iterator[FaceChanges], most: int) -> FaceChanges | None:
    """The first pieces of a change sequence as one, until it has `most` faces; None if it is empty."""
    taken: list[FaceChanges] = []
    for piece in pieces:
        taken.append(piece)
        if sum(len(each.came.faces) + len(each.gone) for each in taken) >= most:
            break
    if not taken:
        return None
    came = FaceBlock.join([each.came for each in taken])
    return FaceChanges(taken[-1].sequence, came, np.concatenate([each.gone for each in taken]))
