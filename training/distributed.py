"""One process or many under `torchrun`: the rank of this one, and its collectives with the others."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed.nn  # before there is a group, which its defaults would keep for ever
from torch import Tensor, distributed


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a run, as rank `rank` sees them; a single one communicates with nobody."""

    rank: int
    count: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which writes files and prints."""
        return self.rank == 0

    def describe(self) -> str:
        """The device, and the number of processes if there are several."""
        where = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "the CPU"
        return where if self.count == 1 else f"{where}, in {self.count} processes"

    def shard(self, length: int) -> slice:
        """This rank's slice of `length` rows; slices follow each other in the order of ranks."""
        return slice(self.rank * length // self.count, (self.rank + 1) * length // self.count)

    def gather(self, rows: Tensor) -> Tensor:
        """all_gather along the first axis; the gradient of each row returns to the rank that it came from."""
        if self.count == 1:
            return rows
        gathered: Tensor = GatherRows.apply(rows, self)  # type: ignore[no-untyped-call, unused-ignore]
        return gathered

    def stack(self, values: Tensor) -> Tensor:
        """all_gather along a new first axis; only this rank's values carry a gradient."""
        if self.count == 1:
            return values[None]
        gathered = collect(values.detach(), self.count)
        gathered[self.rank] = values
        return torch.stack(gathered)

    def add(self, value: Tensor) -> Tensor:
        """all_reduce in place: the sum over all ranks."""
        if self.count > 1:
            distributed.all_reduce(value)
        return value

    def agree(self, wish: bool) -> bool:
        """Whether `wish` is true on any rank; the result is the same on all."""
        return wish if self.count == 1 else bool(self.add(torch.tensor(float(wish), device=self.device)))

    def unshard(self, part: Tensor) -> Tensor:
        """The whole tensor, from the slice of its first axis that each rank holds."""
        if self.count == 1:
            return part
        parts: list[Any] = [None] * self.count
        distributed.all_gather_object(parts, part.cpu())
        return torch.cat(parts)


class GatherRows(torch.autograd.Function):
    """all_gather of (rows, ...) into (count * rows, ...) that passes a gradient back."""

    @staticmethod
    def forward(context: Any, rows: Tensor, processes: Processes) -> Tensor:
        """Concatenate the rows of all ranks, in the order of ranks."""
        context.processes = processes
        return torch.cat(collect(rows, processes.count))

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient of this rank's rows, summed over the ranks, which each hold a part of it.

        Times the number of ranks: DDP averages the backbone's gradient over the ranks, and the sum is meant.
        """
        processes: Processes = context.processes
        whole = processes.add(gradient.contiguous())
        return whole[processes.shard(len(whole))] * processes.count, None


def collect(tensor: Tensor, count: int) -> list[Tensor]:
    """all_gather: the tensor of each of `count` ranks; their shapes must be equal."""
    gathered = [torch.empty_like(tensor) for _ in range(count)]
    distributed.all_gather(gathered, tensor.contiguous())
    return gathered


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Join the process group that `torchrun` started, if any: NCCL between GPUs, gloo between CPUs.

    Learners must be closed within the block: at its end nothing but this may hold the group. Gloo's threads
    need Python's lock to free the tensors of the last collective, so if Python frees the group later, say at
    its exit, it waits for those threads while it holds that lock, or aborts.
    """
    rank, count, local_rank = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if count > 1:
        distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield Processes(rank, count, device)
    finally:
        if count > 1:
            gc.collect()  # DDP refers to itself
            distributed.destroy_process_group()
