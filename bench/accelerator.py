"""A simulated accelerator: a session that takes a fixed time and no processor, as a Mac's GPU would."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from watcher import depth
from watcher.network import Network
from watcher.session import Report, Run, Shape, at_once

SIDE_PX = 256


class Accelerator:
    """Keeps the session's contract. The interpreter's lock is free while it "runs"."""

    def __init__(self, run_ms: float) -> None:
        self.report = Report("cpu", "simulated", {}, 0, 0.0, 0.0, f"fixed {run_ms:g} ms")
        self.lanes = 1
        self._run_s = run_ms / 1000
        random = np.random.default_rng(3)
        coarse = random.random((12, 12), np.float32)
        smooth = cv2.resize(coarse, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC)
        grain = random.random((SIDE_PX, SIDE_PX), np.float32) * np.float32(0.002)
        self._map: NDArray[np.float32] = np.add(smooth, grain, dtype=np.float32)

    @property
    def shape(self) -> Shape:
        return Shape(SIDE_PX, SIDE_PX, True)

    def begin(self, tensor: NDArray[np.float32], _ended: Callable[[], None] = lambda: None) -> Run:
        return at_once(lambda: self.run(tensor))

    def run(self, tensor: NDArray[np.float32]) -> NDArray[np.float32]:
        time.sleep(self._run_s)
        return self._map * np.float32(1.0 + float(tensor[0, 0, 0, 0]))

    def warm_up(self, runs: int = 1) -> float:
        return 0.0

    def close(self) -> None:
        pass


class SimulatedNetwork(Network):
    """The network of the settings in name, the accelerator in fact."""

    run_ms = 40.0

    def open(self) -> Any:
        return Accelerator(self.run_ms)

    def plan(self, shape: Shape) -> depth.Plan:
        return depth.Plan(height_px=SIDE_PX, width_px=SIDE_PX)
