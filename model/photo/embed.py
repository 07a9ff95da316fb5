"""Aligned crops to unit embeddings."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused
from sameface.model.faces import Embedding, Floats, Pixels
from sameface.model.observer import SILENT, Observer
from sameface.model.runtime.micro_batcher import MicroBatcher
from sameface.model.runtime.session_pool import SessionPool


class Embedder:
    """The recogniser of one bundle; where batches pay, crops of several callers share a forward pass."""

    def __init__(self, bundle: Bundle, sessions: SessionPool, observer: Observer = SILENT) -> None:
        self.bundle = bundle
        self.sessions = sessions
        self.observer = observer
        self.identity = bundle.identity
        self.batcher = MicroBatcher(self.forward, sessions.batch_size) if sessions.batch_size > 1 else None
        self.helpers = ThreadPoolExecutor(sessions.count, thread_name_prefix="embed")  # started when needed

    def embed(self, crops: Sequence[Pixels]) -> list[Embedding]:
        """One unit embedding per crop."""
        if not crops:
            return []
        inputs = self.bundle.preprocess(np.stack(crops))
        outputs = self.batcher.run(inputs) if self.batcher else self.forward_each(inputs)
        return [Embedding(to_unit(values), self.identity) for values in outputs]

    def forward(self, inputs: Floats) -> Floats:
        """One pass through the network."""
        self.observer.batch(len(inputs))
        return self.sessions.run(inputs)[0]

    def forward_each(self, inputs: Floats) -> Floats:
        """A pass for every crop; those of a group photo are spread over the sessions."""
        if len(inputs) == 1:
            return self.forward(inputs)
        return np.concatenate(list(self.helpers.map(self.forward, inputs[:, np.newaxis])))

    def close(self) -> None:
        """Answer what waits."""
        self.helpers.shutdown()
        if self.batcher:
            self.batcher.close()


def to_unit(values: Floats) -> Floats:
    """The direction of an embedding: its length says nothing about who it is."""
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0:
        raise BundleRefused("The recogniser yielded an embedding without a direction.")
    return np.asarray(values / length, np.float32)
