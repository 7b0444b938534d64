"""Trials: one rung of the ladder tried on a golden picture, held against the CPU, and timed. Remembered on disk."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from watcher import durable
from watcher.clock import now_s
from watcher.frame import Float32

LEAST_CORRELATION = 0.999
MOST_ERROR = 0.01
_WARM_UPS = 2
_RUNS = 5
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one rung. ``fault`` is empty, or says in words why it cannot be used.

    ``ms``: median of five runs after two, 0 where it was not timed. ``correlation`` (Pearson) and ``error`` (mean
    absolute difference, relative to the CPU's mean absolute value) compare with the CPU; 1 and 0 for the CPU itself.
    """

    rung: str
    ms: float = 0.0
    correlation: float = 0.0
    error: float = 0.0
    fault: str = ""

    def __str__(self) -> str:
        if self.fault:
            return f"{self.rung}: {self.fault}"
        return f"{self.rung}: {self.ms:.1f} ms, correlation {self.correlation:.5f}, error {self.error:.2%}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rung that was chosen, and on what grounds. ``decided_s``: seconds that the decision took."""

    rung: str
    trials: tuple[Trial, ...]
    decided_s: float = 0.0


def golden(height_px: int, width_px: int) -> Float32:
    """(1, 3, height, width) float32 in 0..1: a floor, a wall and a ball; the same every time, in every size."""
    rows, columns = np.mgrid[0:height_px, 0:width_px].astype(np.float32)
    y, x = rows / max(1, height_px - 1), columns / max(1, width_px - 1)
    floor = np.where(y > 0.5, 0.2 + 1.2 * (y - 0.5), 0.5 + 0.2 * x)
    ball = (y - 0.55) ** 2 + (x - 0.45) ** 2 < 0.05
    gray = np.where(ball, 0.9 - 0.5 * y, floor)
    ripple = 0.08 * np.sin(24 * x) * np.cos(17 * y)
    picture = np.stack([gray, gray * 0.9 + ripple, gray * 0.8 + 0.1 * x])
    return np.ascontiguousarray(np.clip(picture, 0, 1)[None], dtype=np.float32)


def unusable(made: Float32) -> str:
    """Why a map of the golden picture, any shape, cannot be right; "" where it may be."""
    if not np.isfinite(made).all():
        return "it returns NaN or infinities"
    return "it returns a constant map" if float(np.ptp(made)) == 0 else ""


def compare(made: Float32, reference: Float32) -> tuple[float, float]:
    """(correlation, mean relative error) of two finite maps of one shape, in double precision."""
    a, b = made.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
    spread = float(a.std() * b.std())
    correlation = float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else 0.0
    return correlation, float(np.abs(a - b).mean() / max(float(np.abs(b).mean()), 1e-12))


def judge(rung: str, made: Float32, reference: Float32) -> Trial:
    """Held against the CPU: correlation at least 0.999, mean relative error at most 1 %."""
    fault = unusable(made)
    if fault or made.shape != reference.shape:
        return Trial(rung, fault=fault or f"it returns {made.shape} where the CPU returns {reference.shape}")
    correlation, error = compare(made, reference)
    if correlation < LEAST_CORRELATION or error > MOST_ERROR:
        fault = f"its map differs from the CPU's (correlation {correlation:.4f}, mean error {error:.1%})"
    return Trial(rung, correlation=correlation, error=error, fault=fault)


def run(inner: Any, output: str, feed: Mapping[str, Any]) -> Float32:
    (made,) = inner.run([output], dict(feed))
    return np.asarray(made, np.float32)


def median_ms(inner: Any, output: str, feed: Mapping[str, Any]) -> float:
    """Milliseconds of one run: the median of five, after two that do not count."""
    took = []
    for _ in range(_WARM_UPS + _RUNS):
        begun_s = now_s()
        run(inner, output, feed)
        took.append((now_s() - begun_s) * 1000)
    return float(statistics.median(took[_WARM_UPS:]))


class Memory:
    """Verdicts by key, in one file. A file that cannot be read is an empty one: it is measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def recall(self, key: str) -> Verdict | None:
        try:
            entry = self._read()[key]
            return Verdict(
                str(entry["rung"]), tuple(Trial(**trial) for trial in entry["trials"]), float(entry["decided_s"])
            )
        except (KeyError, TypeError, ValueError):
            return None

    def keep(self, key: str, verdict: Verdict) -> None:
        """Raises ``OSError``."""
        known = {other: entry for other, entry in self._read().items() if other != key}
        known[key] = asdict(verdict)
        durable.make_folder(self._path.parent, 0o700)
        durable.write_whole(self._path, json.dumps(dict(list(known.items())[-_KEPT:]), indent=1).encode())

    def forget(self, key: str) -> None:
        """Raises ``OSError``."""
        known = self._read()
        if known.pop(key, None) is not None:
            durable.write_whole(self._path, json.dumps(known, indent=1).encode())

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}
