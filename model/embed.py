"""Aligned crops to unit embeddings."""

from collections.abc import Sequence

import numpy as np

from model.bundle import Bundle
from model.errors import BundleRefused
from model.faces import Embedding, Floats, Pixels
from model.observe import SILENT, Observer
from model.session import Runtime


class Embedder:
    """The recogniser of one bundle."""

    def __init__(self, bundle: Bundle, runtime: Runtime, observer: Observer = SILENT) -> None:
        self.observer = observer
        self.bundle = bundle
        self.runtime = runtime
        self.identity = bundle.identity

    def embed(self, crops: Sequence[Pixels]) -> list[Embedding]:
        """One unit embedding per crop, in as many forward passes as the device likes."""
        size = self.runtime.batch_size
        batches = [np.stack(crops[start : start + size]) for start in range(0, len(crops), size)]
        for batch in batches:
            self.observer.batch(len(batch))
        outputs = [self.runtime.run(self.bundle.preprocess(batch))[0] for batch in batches]
        return [Embedding(to_unit(values), self.identity) for output in outputs for values in output]


def to_unit(values: Floats) -> Floats:
    """The direction of an embedding: its length says nothing about who it is."""
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0:
        raise BundleRefused("The recogniser yielded an embedding without a direction.")
    return np.asarray(values / length, np.float32)
