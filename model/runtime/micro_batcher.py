"""Micro-batching: crops of several callers in one forward pass, for devices that are faster with batches."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from sameface.model.faces import Floats

PATIENCE_SECONDS = 0.002  # the longest that the first input of a pass waits for others


class Ask:
    """The inputs of one caller, and a future for their outputs."""

    def __init__(self, inputs: Floats) -> None:
        self.inputs = inputs
        self.asked = time.monotonic()
        self.taken = 0
        self.answer: Future[Floats] = Future()
        self._outputs: list[Floats] = []

    @property
    def left(self) -> int:
        """The number of inputs that no pass has taken yet."""
        return len(self.inputs) - self.taken

    def take(self) -> Floats:
        """The next input."""
        self.taken += 1
        return np.asarray(self.inputs[self.taken - 1])

    def deliver(self, output: Floats) -> None:
        """Add the output of the next input, in the order of `take`; the last one resolves the future."""
        self._outputs.append(output)
        if len(self._outputs) == len(self.inputs):
            self.answer.set_result(np.stack(self._outputs))

    def fail(self, error: BaseException) -> None:
        """Raise `error` at the caller, and drop the inputs that are left."""
        self.taken = len(self.inputs)
        if not self.answer.done():
            self.answer.set_exception(error)


class MicroBatcher:
    """One thread that fills each pass round-robin, with one input from every waiting caller in turn.

    So a photo with a hundred faces slows other callers down, but they do not wait for all hundred. While a
    pass runs on the device, the callers' threads decode and align the crops of the next one.
    """

    def __init__(
        self, run: Callable[[Floats], Floats], size: int, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._run = run
        self._size = size
        self._patience_seconds = patience_seconds
        self._waiting: deque[Ask] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="sameface-batches", daemon=True)
        self._thread.start()

    def run(self, inputs: Floats) -> Floats:
        """The outputs for `inputs`, computed in passes that other callers share."""
        ask = Ask(inputs)
        with self._changed:
            self._waiting.append(ask)
            self._changed.notify()
        return ask.answer.result()

    def close(self) -> None:
        """Answer the callers that wait, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        while asks := self._gather():
            try:
                outputs = self._run(np.stack([ask.take() for ask in asks]))
            except Exception as error:  # any failure is raised at the callers of this pass
                self._fail(asks, error)
                continue
            for ask, output in zip(asks, outputs, strict=True):
                ask.deliver(output)

    def _fail(self, asks: list[Ask], error: Exception) -> None:
        """Raise `error` at the callers of `asks`, and remove those asks from the queue."""
        for ask in asks:
            ask.fail(error)
        with self._changed:
            self._waiting = deque(ask for ask in self._waiting if ask.left)

    def _gather(self) -> list[Ask]:
        """The ask of each input of the next pass, once it is full or the first ask has waited long enough."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._waiting:
                late = self._waiting[0].asked + self._patience_seconds - time.monotonic()
                self._changed.wait_for(self._is_full, timeout=max(0.0, late))
            return self._take_turns()

    def _is_full(self) -> bool:
        return self._closed or sum(ask.left for ask in self._waiting) >= self._size

    def _take_turns(self) -> list[Ask]:
        """Round-robin over the asks until the pass is full; an ask with inputs left stays in the queue."""
        asks: list[Ask] = []
        left = {ask: ask.left for ask in self._waiting}
        while self._waiting and len(asks) < self._size:
            ask = self._waiting.popleft()
            asks.append(ask)
            left[ask] -= 1
            if left[ask] > 0:
                self._waiting.append(ask)
        return asks
