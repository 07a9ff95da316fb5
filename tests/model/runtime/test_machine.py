"""Machines are told apart by their processors, and not by what changes while they run."""

from pathlib import Path

import pytest

from sameface.model.runtime.machine import find_flags, find_processor, name_machine

INTEL = """processor\t: {core}
vendor_id\t: GenuineIntel
model\t\t: 143
model name\t: {name}
cpu MHz\t\t: {mhz}
flags\t\t: {flags}
bogomips\t: {mhz}

"""


def describe(folder: Path, *, name: str = "Xeon", flags: str = "avx2 amx_bf16", mhz: int = 2000) -> Path:
    file = folder / "cpuinfo"
    file.write_text("".join(INTEL.format(core=core, name=name, flags=flags, mhz=mhz) for core in range(2)))
    return file


def test_another_processor_is_another_machine(tmp_path: Path) -> None:
    none = tmp_path / "no gpus"
    before = name_machine(describe(tmp_path), none)
    assert name_machine(describe(tmp_path, mhz=3100), none) == before
    assert name_machine(describe(tmp_path, flags="avx2"), none) != before
    assert name_machine(describe(tmp_path, name="Xeon Gold"), none) != before
    assert name_machine(tmp_path / "missing", none) != before


def test_an_arm_processor_is_known_by_its_parts(tmp_path: Path) -> None:
    file, names = tmp_path / "cpuinfo", set()
    for part in ("0xd40", "0xd4f"):
        file.write_text(f"processor\t: 0\nFeatures\t: fp asimd bf16\nCPU part\t: {part}\n")
        names.add(name_machine(file, tmp_path))
    assert len(names) == 2
    assert find_flags(file) == ["fp", "asimd", "bf16"]


@pytest.mark.parametrize("gpu", ["NVIDIA L4", "Tesla T4"])
def test_another_gpu_is_another_machine(tmp_path: Path, gpu: str) -> None:
    info, gpus = describe(tmp_path), tmp_path / "gpus"
    (gpus / "0000:01:00.0").mkdir(parents=True)
    said = gpus / "0000:01:00.0" / "information"
    said.write_text("Model: \t\t NVIDIA A100\nIRQ: 16\n")
    before = name_machine(info, gpus)
    assert before != name_machine(info, tmp_path / "no gpus")
    said.write_text("Model: \t\t NVIDIA A100\nIRQ: 17\n")
    assert name_machine(info, gpus) == before
    said.write_text(f"Model: \t\t {gpu}\nIRQ: 16\n")
    assert name_machine(info, gpus) != before


def test_the_processor_is_named(tmp_path: Path) -> None:
    assert find_processor(describe(tmp_path, name="Xeon Gold")) == "Xeon Gold"
    assert find_processor(tmp_path / "missing") is None
    assert find_flags(tmp_path / "missing") is None
