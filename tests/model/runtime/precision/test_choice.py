"""Which lower precision a device has, and what happens where it has none."""

from pathlib import Path

import pytest

from sameface.model.errors import PrecisionUnavailable
from sameface.model.runtime import openvino
from sameface.model.runtime.precision.choice import (
    AUTO,
    EXACT,
    Offer,
    Precision,
    bf16_fault,
    find_offer,
    lists_bf16,
)

BF16 = Precision("bf16")


def test_exact_is_offered_nothing() -> None:
    assert find_offer(EXACT, "cpu") is None
    assert find_offer(EXACT, "gpu") is None


def test_auto_takes_what_the_device_has() -> None:
    assert find_offer(AUTO, "cpu", lambda: None) == Offer("bf16")
    assert find_offer(AUTO, "gpu") == Offer("fp16")


def test_auto_stays_exact_on_a_cpu_without_bf16() -> None:
    assert find_offer(AUTO, "cpu", lambda: "there is none") == Offer("bf16", "there is none")


def test_bf16_is_refused_where_there_is_none() -> None:
    with pytest.raises(PrecisionUnavailable, match="must be bf16, but there is none"):
        find_offer(BF16, "cpu", lambda: "there is none")
    with pytest.raises(PrecisionUnavailable, match="on a GPU, --precision auto takes fp16"):
        find_offer(BF16, "gpu")


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("flags\t\t: fpu avx2 fma", False),
        ("flags\t\t: fpu avx2 avx512f avx512_bf16", True),
        ("flags\t\t: amx_bf16 amx_tile", True),
        ("Features\t: fp asimd i8mm bf16", True),
        ("Features\t: fp asimd", False),
        ("no such line", True),
    ],
)
def test_the_list_of_instruction_sets_is_read(tmp_path: Path, line: str, there: bool) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\n{line}\nbogomips\t: 1\n")
    assert lists_bf16(info) is there
    fault = bf16_fault(info)
    if not there:
        assert fault == "this CPU has no BF16 (neither AVX-512 BF16 nor AMX)"
    elif openvino.find_version() is None:
        assert fault is not None
        assert "extra openvino" in fault


def test_a_system_without_the_list_asks_the_engine(tmp_path: Path) -> None:
    assert lists_bf16(tmp_path / "missing")
