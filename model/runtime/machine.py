"""The processors that networks run on, as the system describes them."""

import hashlib
import platform
import re
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
GPU_INFO = Path("/proc/driver/nvidia/gpus")
OF_CPU = r"^((?:vendor_id|cpu family|model|model name|stepping|CPU \w+|flags|Features)\s*:.*)$"
OF_GPU = r"^(Model:.*)$"


def name_machine(cpu_info: Path = CPU_INFO, gpu_info: Path = GPU_INFO) -> str:
    """A short name of this machine's CPU and GPUs: what was measured on others does not count here."""
    lines = {platform.machine(), *find_lines(cpu_info, OF_CPU)}
    for gpu in gpu_info.glob("*/information"):
        lines.update(find_lines(gpu, OF_GPU))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:8]


def find_processor(cpu_info: Path = CPU_INFO) -> str | None:
    """The name of the CPU's model; None if the system does not say it."""
    return next(iter(find_lines(cpu_info, r"^model name\s*: (.+)$")), None)


def find_flags(cpu_info: Path = CPU_INFO) -> list[str] | None:
    """The CPU's instruction sets by Linux's names for them; None if the system does not list them."""
    found = find_lines(cpu_info, r"^(?:flags|Features)\s*:(.*)$")
    return found[0].split() if found else None


def find_lines(file: Path, pattern: str) -> list[str]:
    """What the group of `pattern` matches in a file of the system; nothing if there is no such file."""
    try:
        return re.findall(pattern, file.read_text("utf-8"), re.MULTILINE)
    except OSError:
        return []
