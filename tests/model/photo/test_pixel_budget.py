"""Decoded photos of all threads: they wait for room, and give their memory back."""

import asyncio
import threading
import time

import pytest
from PIL import Image

from sameface.model.photo.image import ImageLimits
from sameface.model.photo.pixel_budget import PixelBudget, count_pixels
from sameface.model.runtime.work_queue import WorkQueue
from tests.conftest import wait_for
from tests.pictures import encode


def of_pixels(pixels: int) -> Image.Image:
    return Image.new("L", (pixels, 1))


def test_photos_wait_for_room_and_a_large_one_is_taken_alone() -> None:
    budget, seen = PixelBudget(ImageLimits(max_decoded_pixels=100)), []

    def decode(pixels: int) -> None:
        with budget.holding(of_pixels(pixels)):
            seen.append(budget.taken)
            time.sleep(0.02)

    threads = [threading.Thread(target=decode, args=(pixels,)) for pixels in (60, 60, 30, 500, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 5
    assert max(taken for taken in seen if taken < 500) <= 100
    assert 500 in seen
    assert budget.taken == 0


def test_the_header_tells_how_much_a_photo_will_cost() -> None:
    assert count_pixels(encode(Image.new("RGB", (30, 20)), "WEBP"), ImageLimits(max_pixels=1000)) == 600
    assert count_pixels(Image.new("RGB", (30, 20)), ImageLimits(max_pixels=1000)) == 600
    assert count_pixels(b"nothing", ImageLimits()) == 0
    assert count_pixels(encode(Image.new("RGB", (30, 20))), ImageLimits(max_pixels=100)) == 100


def test_a_photo_that_nobody_wants_any_more_stops_waiting_for_room() -> None:
    budget, queue = PixelBudget(ImageLimits(max_decoded_pixels=100)), WorkQueue(1, 1)

    def decode(photo: Image.Image) -> None:
        with budget.holding(photo):
            pytest.fail("there is no room")

    async def give_up() -> None:
        waiting = asyncio.ensure_future(queue.run_all(decode, [of_pixels(50)]))
        await asyncio.sleep(0.05)
        waiting.cancel()

    with budget.holding(of_pixels(80)):
        asyncio.run(give_up())
        wait_for(lambda: queue.taken == 0)
    queue.close()
