"""Aligned crops to unit embeddings."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused, InvalidEmbedding, ModelMismatch
from sameface.model.faces import UNIT, Embedding, Floats, Pixels
from sameface.model.observer import SILENT, Observer
from sameface.model.runtime.micro_batcher import MicroBatcher
from sameface.model.runtime.session_pool import SessionPool, open_sessions


class Embedder:
    """The recogniser of one bundle; on devices that like batches, crops of several callers share a pass."""

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
        """One forward pass per crop; the crops of a group photo are spread over the sessions."""
        if len(inputs) == 1:
            return self.forward(inputs)
        return np.concatenate(list(self.helpers.map(self.forward, inputs[:, np.newaxis])))

    def close(self) -> None:
        """Finish what waits, and end the threads."""
        self.helpers.shutdown()
        if self.batcher:
            self.batcher.close()


def open_embedder(
    bundle: Bundle, device: str, cache: Path, threads: int = 1, observer: Observer = SILENT
) -> Embedder:
    """The recogniser of a bundle, its graph prepared for the device and kept in the folder `cache`."""
    return Embedder(bundle, open_sessions(bundle, device, cache, threads), observer)


def to_unit(values: Floats) -> Floats:
    """An embedding at length 1: its direction says who it is, its length does not."""
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0:
        raise BundleRefused("The recogniser yielded an embedding without a direction.")
    return np.asarray(values / length, np.float32)


def accept_embedding(bundle: Bundle, values: Sequence[float] | Floats, made_by: str | None) -> Embedding:
    """An embedding that a client sent, at unit length; another length than `bundle` makes, or another model
    than `bundle` in `made_by`, is an error."""
    contract = bundle.contract
    if made_by not in (None, contract.name):
        raise ModelMismatch(
            f"The embedding is of {made_by}, and {contract.name} runs here.", model=contract.name
        )
    with np.errstate(over="ignore"):  # a number that is too large becomes infinite, and is refused
        embedding = np.asarray(values, np.float32)
    if embedding.shape != (contract.dimension,):
        raise InvalidEmbedding(f"An embedding of {contract.name} has {contract.dimension} numbers.")
    length = float(np.linalg.norm(embedding))
    if not np.isfinite(length) or length == 0:
        raise InvalidEmbedding("An embedding must be finite and not zero.")
    return Embedding(embedding / np.float32(length), bundle.identity, normalised=abs(length - 1) > UNIT)
