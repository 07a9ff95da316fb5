"""The batch size is the one that pays, on a device of any kind."""

import time

import numpy as np
import pytest

from sameface.model.runtime.batch_size import measure_batch_size

SAMPLE = np.zeros((1, 3, 2, 2), np.float32)


class Device:
    """Takes its time: something for each pass, something for each image."""

    def __init__(self, fixed: float, per_image: float) -> None:
        self.fixed = fixed
        self.per_image = per_image
        self.clock = 0.0
        self.sizes: list[int] = []

    def run(self, batch: np.ndarray) -> None:
        self.sizes.append(len(batch))
        self.clock += self.fixed + self.per_image * len(batch)


def measure(device: Device, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(time, "perf_counter", lambda: device.clock)
    return measure_batch_size(device.run, SAMPLE)


def test_where_a_batch_does_not_pay_it_is_not_tried_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Device(0.0005, 0.02)
    assert measure(slow, monkeypatch) == 1
    assert max(slow.sizes) == 4


@pytest.mark.parametrize(("fixed", "per_image", "expected"), [(0.004, 0.00005, 32), (0.004, 0.001, 16)])
def test_a_batch_is_as_large_as_it_pays(
    fixed: float, per_image: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measure(Device(fixed, per_image), monkeypatch) == expected
