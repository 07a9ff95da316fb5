"""Batches of crops in an order that depends on the seed alone, read ahead of the training step."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sameface.training.data.face_set import FaceSet
from sameface.training.data.identity_sampler import IdentitySampler

READERS = 2  # threads
AHEAD = 4  # batches that are read before they are asked for


@dataclass(frozen=True, slots=True)
class Batch:
    """Crops before augmentation, their labels, and their indices in the face set."""

    crops: Tensor  # uint8 (batch, 3, 112, 112), contiguous, because augmentation is faster on it
    labels: Tensor  # (batch,)
    indices: NDArray[np.int64]  # (batch,)


class BatchOrder:
    """The indices of each batch: every image once per epoch, or P people with K images each.

    A batch follows from the seed and its number alone, so a resumed run continues with the same batches.
    """

    def __init__(self, faces: FaceSet, batch: int, seed: int, people: int | None = None) -> None:
        self.size = len(faces)
        self.batch = batch
        self.seed = seed
        self.sampler = (
            IdentitySampler(faces.labels.tolist(), people=people, images=batch // people, seed=seed)
            if people
            else None
        )
        self._epoch = -1
        self._batches: list[NDArray[np.int64]] = []

    def __getitem__(self, step: int) -> NDArray[np.int64]:
        per_epoch = len(self.sampler) if self.sampler else max(1, self.size // self.batch)
        epoch, place = divmod(step, per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._shuffle(epoch)
        return self._batches[place]

    def _shuffle(self, epoch: int) -> list[NDArray[np.int64]]:
        if self.sampler:
            self.sampler.set_epoch(epoch)
            return [np.array(indices) for indices in self.sampler]
        order = np.random.default_rng((self.seed, epoch)).permutation(self.size)
        if self.size < self.batch:  # a set smaller than a batch is repeated within it
            return [np.resize(order, self.batch)]
        return np.split(order[: self.size // self.batch * self.batch], self.size // self.batch)


class Loader:
    """Reads this rank's part of each batch ahead, on threads: Pillow decodes without the interpreter lock."""

    def __init__(self, faces: FaceSet, order: BatchOrder, rank: int = 0, processes: int = 1) -> None:
        self.faces = faces
        self.order = order
        self.part = slice(rank * order.batch // processes, (rank + 1) * order.batch // processes)
        self._executor = ThreadPoolExecutor(READERS, thread_name_prefix="sameface-loader")

    def batches(self, first: int, stop: int) -> Iterator[Batch]:
        """The batches with the numbers from `first` to `stop` - 1."""
        waiting: deque[Future[Batch]] = deque()
        for step in range(first, stop):
            waiting.append(self._executor.submit(self.read, self.order[step][self.part]))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def read(self, indices: NDArray[np.int64]) -> Batch:
        """Read one batch."""
        read = [self.faces.read(int(index)) for index in indices]
        # With numpy, because torch would start a thread pool for every reader, and with more threads than
        # cores the pool of the network falls asleep between its steps.
        crops = np.ascontiguousarray(np.stack([crop for crop, _ in read]).transpose(0, 3, 1, 2))
        return Batch(torch.from_numpy(crops), torch.tensor([label for _, label in read]), indices)

    def close(self) -> None:
        """Stop the threads."""
        self._executor.shutdown(cancel_futures=True)
