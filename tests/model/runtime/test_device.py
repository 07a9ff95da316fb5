"""The device: taken if it works, refused with the fault if it must and does not."""

import pytest

from sameface.model.errors import DeviceUnavailable
from sameface.model.runtime.device import cuda_fault, select_device


def test_a_cpu_is_taken_without_a_look_at_cuda() -> None:
    def must_not_be_asked() -> str | None:
        raise AssertionError("CUDA was looked for")

    assert select_device("cpu", must_not_be_asked) == "cpu"


@pytest.mark.parametrize("requested", ["auto", "gpu"])
def test_a_working_gpu_is_taken(requested: str) -> None:
    assert select_device(requested, lambda: None) == "gpu"


def test_a_gpu_at_fault_is_passed_over_by_auto() -> None:
    assert select_device("auto", lambda: "the driver is too old") == "cpu"


def test_a_gpu_at_fault_is_refused_with_the_fault_when_it_is_required() -> None:
    with pytest.raises(DeviceUnavailable, match="the driver is too old"):
        select_device("gpu", lambda: "the driver is too old")


def test_without_a_gpu_a_required_one_is_refused_for_real() -> None:
    if cuda_fault() is None:
        pytest.skip("CUDA works here")
    assert select_device("auto") == "cpu"
    with pytest.raises(DeviceUnavailable, match="CUDA"):
        select_device("gpu")
