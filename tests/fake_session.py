"""A session without a runtime: what the seams' tests run instead of a network. Passes the real one's suite."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from watcher.errors import SessionError, WrongThread
from watcher.frame import Float32
from watcher.session import Report, Run, Shape, at_once

Answer = Callable[[Float32], Float32]


def mean_of_channels(tensor: Float32) -> Float32:
    return np.asarray(tensor[0].mean(axis=0), np.float32)


class FakeSession:
    """``answer`` makes the map, and may raise, wait or return nonsense like a network that misbehaves.

    With more than one of ``lanes`` each run has a thread of its own, as the runtime's runs side by side have.
    """

    def __init__(self, shape: Shape = Shape(16, 24), answer: Answer = mean_of_channels, lanes: int = 1) -> None:  # noqa: B008
        self.report = Report("auto", "cpu", {"cpu": 1}, 0, 1.0, 0.0, "fake 1")
        self.lanes = lanes
        self.runs = 0
        self.closed = False
        self._shape = shape
        self._answer = answer
        self._owner = threading.current_thread()
        self._begun: list[Run] = []

    @property
    def shape(self) -> Shape:
        return self._shape

    def begin(self, tensor: Float32, ended: Callable[[], None] = lambda: None) -> Run:
        self._check_owner()
        if self.lanes == 1:
            return at_once(lambda: self._made(tensor))
        run = Run(ended)
        self._begun.append(run)
        threading.Thread(target=self._in_a_lane, args=(run, tensor), name="lane", daemon=True).start()
        return run

    def _in_a_lane(self, run: Run, tensor: Float32) -> None:
        run.end(at_once(lambda: self._made(tensor)).result)

    def run(self, tensor: Float32) -> Float32:
        return self.begin(tensor).result()

    def _made(self, tensor: Float32) -> Float32:
        if self.closed:
            raise SessionError("the session is closed")
        fits = tensor.shape[:2] == (1, 3) and tensor.ndim == 4
        if self._shape.fixed:
            fits = tensor.shape == (1, 3, self._shape.height_px, self._shape.width_px)
        if not fits or tensor.dtype != np.float32:
            raise SessionError(f"the tensor is {tensor.shape} {tensor.dtype}")
        self.runs += 1
        try:
            made = self._answer(tensor)
        except Exception as error:
            raise SessionError(f"the network failed to run: {error}") from error
        if made.ndim != 2:
            raise SessionError(f"the network returned {made.shape}, not one map")
        return made

    def warm_up(self, runs: int = 1) -> float:
        for _ in range(runs):
            self.run(np.full((1, 3, self._shape.height_px, self._shape.width_px), 0.5, np.float32))
        self.report = replace(self.report, warmup_ms=1.0)
        return 1.0

    def close(self) -> None:
        self._check_owner()
        for run in self._begun:
            run.wait()
        self.closed = True

    def _check_owner(self) -> None:
        if threading.current_thread() is not self._owner:
            raise WrongThread("another thread touched the session")
