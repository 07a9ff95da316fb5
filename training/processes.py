"""One process or several of them, as torchrun starts them."""

import os
from dataclasses import dataclass

import torch
from torch import distributed


@dataclass(frozen=True, slots=True)
class Processes:
    """Which of how many this is, and the device it works on."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this one writes what the run leaves behind."""
        return self.rank == 0

    def leave(self) -> None:
        """End what `join` began."""
        if self.count > 1:
            distributed.destroy_process_group()


def join(device: str = "auto") -> Processes:
    """Find out who else trains: torchrun says so in the environment; alone, nothing is started."""
    rank, count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    on_gpu = torch.cuda.is_available() if device == "auto" else device == "gpu"
    place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(place)
    if count > 1:
        distributed.init_process_group("nccl" if on_gpu else "gloo")
    return Processes(rank, count, place)
