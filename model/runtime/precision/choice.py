"""Which precision networks run in: the one that was asked for, and the one that the device has."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sameface.model.errors import PrecisionUnavailable
from sameface.model.runtime import openvino
from sameface.model.runtime.machine import CPU_INFO, find_flags

PRECISIONS = ("auto", "exact", "bf16")
CPU_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")  # the last one is ARM's


@dataclass(frozen=True, slots=True)
class Precision:
    """The precision that was asked for, and the folder of aligned crops on which a lower one is proved.

    `faces` None stands for the drawn faces that come with sameface.
    """

    name: str = "auto"
    faces: Path | None = None


AUTO, EXACT = Precision("auto"), Precision("exact")


@dataclass(frozen=True, slots=True)
class Offer:
    """The lower precision of a device, and the reason why it cannot be used there, or None."""

    precision: str
    fault: str | None = None


def find_offer(
    wanted: Precision, device: str, find_bf16_fault: Callable[[], str | None] | None = None
) -> Offer | None:
    """The lower precision of `device`, None if `exact` was asked for; raises if bf16 was and is not there."""
    if wanted.name == "exact":
        return None
    if device != "cpu":
        if wanted.name == "bf16":
            raise PrecisionUnavailable("bf16 is for CPUs: on a GPU, --precision auto takes fp16.")
        return Offer("fp16")
    fault = (find_bf16_fault or bf16_fault)()
    if fault and wanted.name == "bf16":
        raise PrecisionUnavailable(f"The precision must be bf16, but {fault}.")
    return Offer("bf16", fault)


def bf16_fault(cpu_info: Path = CPU_INFO) -> str | None:
    """Why this machine cannot compute in bf16, or None if it can."""
    if not lists_bf16(cpu_info):
        return "this CPU has no BF16 (neither AVX-512 BF16 nor AMX)"
    if openvino.find_version() is None:
        return "OpenVINO, which computes in bf16, is not installed (the extra openvino)"
    if "BF16" not in openvino.list_capabilities():
        return "OpenVINO has no BF16 on this CPU"
    return None


def lists_bf16(cpu_info: Path) -> bool:
    """Whether the system lists an instruction set for BF16; True where there is no such list."""
    flags = find_flags(cpu_info)
    return flags is None or any(flag in flags for flag in CPU_FLAGS)
