"""One process or many under `torchrun`: who this one is, and how it shares rows with the others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True, slots=True)
class Processes:
    """All processes of a run as this one sees them; alone, every method gives back what it was given."""

    rank: int
    count: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this is the one that writes files and speaks."""
        return self.rank == 0

    def share(self, length: int) -> slice:
        """This process's part of so many rows; parts follow each other in the order of ranks."""
        return slice(self.rank * length // self.count, (self.rank + 1) * length // self.count)

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes; their gradient finds its way back to whoever they came from."""
        if self.count == 1:
            return rows
        gathered: Tensor = GatherRows.apply(rows, self)  # type: ignore[no-untyped-call, unused-ignore]
        return gathered

    def complete(self, values: Tensor) -> Tensor:
        """(processes, ...): these values and, as constants, those of the others."""
        if self.count == 1:
            return values[None]
        everyone = collect(values.detach(), self.count)
        everyone[self.rank] = values
        return torch.stack(everyone)

    def add(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value

    def agree(self, wish: bool) -> bool:
        """Whether any process wishes it: all of them get the same answer."""
        return wish if self.count == 1 else bool(self.add(torch.tensor(float(wish), device=self.device)))

    def join(self, part: Tensor) -> Tensor:
        """A tensor whose first axis is dealt out by `share`, whole again."""
        if self.count == 1:
            return part
        parts: list[Any] = [None] * self.count
        distributed.all_gather_object(parts, part.cpu())
        return torch.cat(parts)


class GatherRows(torch.autograd.Function):
    """All processes' rows (count * rows, ...) from everybody's (rows, ...)."""

    @staticmethod
    def forward(context: Any, rows: Tensor, processes: Processes) -> Tensor:
        """Concatenated in the order of ranks."""
        context.processes = processes
        return torch.cat(collect(rows, processes.count))

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Every process knows a part of the gradient of every row.

        DDP will take the mean over the processes of what each makes of its own rows, and the sum is meant.
        """
        processes: Processes = context.processes
        whole = processes.add(gradient.contiguous())
        return whole[processes.share(len(whole))] * processes.count, None


def collect(tensor: Tensor, count: int) -> list[Tensor]:
    """Everybody's tensor of this shape."""
    everyone = [torch.empty_like(tensor) for _ in range(count)]
    distributed.all_gather(everyone, tensor.contiguous())
    return everyone


@contextmanager
def join_processes() -> Iterator[Processes]:
    """This process among those that `torchrun` started: NCCL between GPUs, gloo between CPUs."""
    rank, count, place = (
        int(os.environ.get(name, usual))
        for name, usual in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", place) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if count > 1:
        distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield Processes(rank, count, device)
    finally:
        if count > 1:
            distributed.destroy_process_group()
