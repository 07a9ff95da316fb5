"""Aligned crops to unit embeddings."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sameface.model.bundles.bundle import Bundle
from sameface.model.errors import BundleRefused, InvalidEmbedding, ModelMismatch
from sameface.model.faces import UNIT, Embedding, Floats, Pixels
from sameface.model.observer import SILENT, Observer
from sameface.model.runtime.micro_batcher import MicroBatcher
from sameface.model.runtime.precision.choice import EXACT, Precision
from sameface.model.runtime.session_pool import SessionPool, open_sessions

NO_DIRECTION = "An embedding must be finite and not zero."


class Embedder:
    """The recogniser of one bundle; where batches are faster, several callers' crops share a forward pass."""

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
        """The outputs of one forward pass."""
        self.observer.batch(len(inputs))
        return self.sessions.run(inputs)[0]

    def forward_each(self, inputs: Floats) -> Floats:
        """One forward pass per crop; the crops of a group photo are spread over the sessions."""
        if len(inputs) == 1:
            return self.forward(inputs)
        return np.concatenate(list(self.helpers.map(self.forward, inputs[:, np.newaxis])))

    def close(self) -> None:
        """Embed the crops that wait, and end the threads."""
        self.helpers.shutdown()
        if self.batcher:
            self.batcher.close()


def open_embedder(
    bundle: Bundle,
    device: str,
    cache: Path,
    threads: int = 1,
    observer: Observer = SILENT,
    precision: Precision = EXACT,
) -> Embedder:
    """The recogniser of a bundle, its graph prepared for the device and kept in the folder `cache`."""
    return Embedder(bundle, open_sessions(bundle, device, cache, threads, precision), observer)


def to_unit(values: Floats) -> Floats:
    """The embedding scaled to length 1: only its direction says whose it is."""
    length = float(np.linalg.norm(values))
    if not np.isfinite(length) or length == 0:
        raise BundleRefused("The recogniser yielded an embedding without a direction.")
    return np.asarray(values / length, np.float32)


def accept_embedding(bundle: Bundle, values: Sequence[float] | Floats, made_by: str | None) -> Embedding:
    """The embedding that a client sent, scaled to length 1.

    Another dimension than the bundle's is an error, and so is the name of another bundle in `made_by`.
    """
    contract = bundle.contract
    if made_by not in (None, contract.name):
        raise ModelMismatch(
            f"The embedding is of {made_by}, and {contract.name} runs here.", model=contract.name
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, which is refused below
        embedding = np.asarray(values, np.float32)
    if embedding.shape != (contract.dimension,):
        raise InvalidEmbedding(f"An embedding of {contract.name} has {contract.dimension} numbers.")
    [unit], [normalised], [sound] = scale_rows(embedding[None])
    if not sound:
        raise InvalidEmbedding(NO_DIRECTION)
    return Embedding(unit, bundle.identity, normalised=bool(normalised))


def scale_rows(rows: Floats) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Embeddings (rows) scaled to length 1, which had another length, and which are finite and not zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
        sound = np.isfinite(lengths) & (lengths > 0)
        units: Floats = rows / np.where(sound, lengths, 1).astype(np.float32)[:, None]
    return units, np.abs(lengths - 1) > UNIT, sound
