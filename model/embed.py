"""Aligned crops to unit embeddings."""

from collections.abc import Sequence

import numpy as np

from model.bundle import Bundle
from model.errors import BundleRefused
from model.faces import Embedding, Floats, Pixels
from model.microbatching import MicroBatcher
from model.observe import SILENT, Observer
from model.runtime import Runtime


class Embedder:
    """The recogniser of one bundle; where batches pay, crops of several callers share a forward pass."""

    def __init__(self, bundle: Bundle, runtime: Runtime, observer: Observer = SILENT) -> None:
        self.bundle = bundle
        self.runtime = runtime
        self.observer = observer
        self.identity = bundle.identity
        self.batcher = MicroBatcher(self.forward, runtime.batch_size) if runtime.batch_size > 1 else None

    def embed(self, crops: Sequence[Pixels]) -> list[Embedding]:
        """One unit embedding per crop."""
        if not crops:
            return []
        inputs = self.bundle.preprocess(np.stack(crops))
        outputs = self.batcher.run(inputs) if self.batcher else self.forward_one_by_one(inputs)
        return [Embedding(to_unit(values), self.identity) for values in outputs]

    def forward(self, inputs: Floats) -> Floats:
        """One pass through the network."""
        self.observer.batch(len(inputs))
        return self.runtime.run(inputs)[0]

    def forward_one_by_one(self, inputs: Floats) -> Floats:
        """A pass for every crop, on the calling thread."""
        return np.concatenate([self.forward(one[np.newaxis]) for one in inputs])

    def close(self) -> None:
        """Answer what waits."""
        if self.batcher:
            self.batcher.close()


def to_unit(values: Floats) -> Floats:
    """The direction of an embedding: its length says nothing about who it is."""
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0:
        raise BundleRefused("The recogniser yielded an embedding without a direction.")
    return np.asarray(values / length, np.float32)
