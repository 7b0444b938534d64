"""An ``onnxruntime`` that has CoreML, on a machine without: real sessions on the CPU, with faults of one's choice.

It accepts and refuses options as 1.32 does, and without ``enable_fallback=False`` it prints and runs on the CPU, as
that does. Faults are chosen for each of CoreML's compute units.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from watcher.session.provider import COREML, CPU

ACCEPTED = {
    "ModelFormat": {"NeuralNetwork", "MLProgram"},
    "MLComputeUnits": {"ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"},
    "RequireStaticInputShapes": {"0", "1"},
    "EnableOnSubgraphs": {"0", "1"},
    "ModelCacheDirectory": None,
}


@dataclass
class Part:
    ep_name: str
    count: int

    def get_nodes(self) -> list[int]:
        return [0] * self.count


@dataclass
class FakeCoreML:
    """``faults``: by compute units, one of refuse, stale, nan, constant, wrong, slightly, none, slow, abort, hang,
    pieces, abort-run. ``stale`` refuses while the cache folder holds something of an earlier process.
    """

    faults: dict[str, str] = field(default_factory=dict)
    version: str = "1.32.0"
    offered: list[Any] = field(default_factory=list)
    cpu_slow_s: float = 0.0

    SessionOptions = onnxruntime.SessionOptions
    GraphOptimizationLevel = onnxruntime.GraphOptimizationLevel
    __name__ = "onnxruntime"

    @property
    def __version__(self) -> str:
        return self.version

    def get_available_providers(self) -> list[str]:
        return [COREML, CPU]

    def tried(self) -> list[str]:
        """The compute units of each CoreML session that was asked for."""
        return [o[0][1].get("MLComputeUnits", "") for o in self.offered if o[0][0] == COREML]

    def InferenceSession(self, path: str, settings: Any, providers: Any, enable_fallback: bool = True) -> Any:  # noqa: N802
        self.offered.append(providers)
        name, options = providers[0]
        try:
            if name == COREML:
                self._load(options)
        except RuntimeError as error:
            if not enable_fallback:
                raise
            print(f"EP Error {error} when using {providers}\nFalling back to {[CPU]} and retrying.")
            name = CPU
        real = onnxruntime.InferenceSession(path, settings, providers=[CPU], enable_fallback=False)
        if name == CPU:
            return Pretending(real, [CPU], [Part(CPU, 110)], _slowly(self.cpu_slow_s))
        fault = self.faults.get(options.get("MLComputeUnits", ""), "")
        parts = [Part(CPU, 110)] if fault == "none" else [Part(COREML, 108), Part(CPU, 2)]
        parts = [Part(COREML, 18)] * 6 if fault == "pieces" else parts
        return Pretending(real, [COREML, CPU], parts, RUNS.get(fault, _same))

    def _load(self, options: dict[str, Any]) -> None:
        for key, value in options.items():
            if key not in ACCEPTED:
                raise RuntimeError(f"Unknown option: {key}")
            allowed = ACCEPTED[key]
            if not isinstance(value, str) or (allowed is not None and value not in allowed):
                raise RuntimeError(f"Invalid value for option {key}: {value}")
        fault = self.faults.get(options.get("MLComputeUnits", ""), "")
        cache = Path(options["ModelCacheDirectory"]) if "ModelCacheDirectory" in options else None
        if fault == "stale" and cache is not None and (cache / "model").exists():
            raise RuntimeError("the compiled model is not compatible")
        if cache is not None:
            (cache / "model").write_text("compiled")
        if fault in LOADS:
            LOADS[fault]()


class Pretending:
    """A real session that claims another assignment, and runs in another way."""

    def __init__(self, real: Any, providers: list[str], parts: list[Part], run: Callable[[Any], Any]) -> None:
        self._real = real
        self._providers = providers
        self._parts = parts
        self._run = run

    def get_providers(self) -> list[str]:
        return self._providers

    def get_provider_graph_assignment_info(self) -> list[Part]:
        return self._parts

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        return [self._run(self._real.run(outputs, feed)[0])]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _refuse() -> None:
    raise RuntimeError("[ONNXRuntimeError] : 1 : FAIL : Error compiling model")


def _abort() -> None:
    signal.raise_signal(signal.SIGABRT)  # to this thread, as abort(3) does it: nothing runs after it


def _hang() -> None:
    while True:
        time.sleep(3600)  # a hang is no wait for anything: whoever loads the network has to end this process


def _same(made: Any) -> Any:
    return made


def _slowly(seconds: float) -> Callable[[Any], Any]:
    def run(made: Any) -> Any:
        time.sleep(seconds)  # what is measured is time, so time has to go by
        return made

    return run


def _abort_run(made: Any) -> Any:
    _abort()
    return made


def _nan(made: Any) -> Any:
    return np.where(np.arange(made.size).reshape(made.shape) == 7, np.float32("nan"), made)


LOADS: dict[str, Callable[[], None]] = {"refuse": _refuse, "abort": _abort, "hang": _hang}
RUNS: dict[str, Callable[[Any], Any]] = {
    "nan": _nan,
    "constant": lambda made: np.full_like(made, 3),
    "wrong": lambda made: made[..., ::-1],
    "slightly": lambda made: made * np.float32(1.02),
    "within": lambda made: made * np.float32(1.002),
    "slow": _slowly(0.05),
    "abort-run": _abort_run,
}
