"""Names the machine that a benchmark runs on: ratios travel between machines of one kind alone."""

import os
import platform
import re
from pathlib import Path

from sameface.model.runtime.device import available_cores

# What decides how fast networks and searches are, by the name that Linux has for it, weakest first.
SETS = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx512_vnni": "VNNI",
    "avx_vnni": "VNNI",
    "avx512_bf16": "BF16",
    "amx_tile": "AMX",
    "asimd": "NEON",
    "asimddp": "DOTPROD",
    "i8mm": "I8MM",
    "bf16": "BF16",
}


def list_instruction_sets() -> list[str]:
    """The instruction sets of `SETS` that this processor has, each once."""
    said = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", said, re.MULTILINE)
    there = set(flags[1].split()) if flags else set()
    return list(dict.fromkeys(name for flag, name in SETS.items() if flag in there))


def name_kind() -> str:
    """The kind of this machine: its architecture, cores and instruction sets."""
    sets = ", ".join(list_instruction_sets()) or "no known instruction sets"
    return f"{platform.machine()}, {available_cores()} cores, {sets}"


def describe_machine() -> str:
    """One line about this machine: its kind, and how busy others keep it."""
    return f"{name_kind()}; load before the run {os.getloadavg()[0]:.1f}"
