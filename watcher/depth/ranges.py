"""Ranges: which raw values become the two ends of the scale. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from watcher.frame import Float32

Range = tuple[float, float]

_LEAST = float(np.finfo(np.float64).eps)


def of_percentiles(raw: Float32, percents: tuple[float, float]) -> Range | None:
    """The raw values at two percentages (0..100) of the finite values of ``raw`` (h, w) float32.

    Linear between neighbouring values. ``None`` where both are one value, or nothing is finite: then the map's own
    minimum and maximum have to do, or a picture with one small object in it would lose that object.
    """
    finite = raw[np.isfinite(raw)]
    if not finite.size:
        return None
    low, high = (float(value) for value in np.percentile(finite.astype(np.float64), percents))
    return (low, high) if high - low > _LEAST else None


def undone(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], span: Range, near: str) -> Float32:
    """The relative inverse depth (H, W) float32 of a finished map: what ``finish`` did, backwards.

    ``values`` (H, W) uint8, uint16, float16 or float32 as written; ``span`` its range; ``near`` white or black.
    Integers come back to within half a step of ``(high - low) / 255`` or ``/ 65535`` where they were not clipped.
    """
    low, high = span
    if values.dtype.kind == "f":
        plain = values.astype(np.float64)
        return (low + high - plain if near == "black" else plain).astype(np.float32)
    full = 255.0 if values.dtype == np.uint8 else 65535.0
    share = values.astype(np.float64) / full
    if near == "black":
        share = 1.0 - share
    return (low + share * (high - low)).astype(np.float32)


# -- ranges that more than one frame decides about -----------------------------------------------------------------

_POINTS = 257
_SHOT_PERCENTS = (0.1, 99.9)
_LIVE_PERCENTS = (0.5, 99.5)
_CUT = 0.25
_WIDEN = 0.2  # of the gap, each frame: what is new comes into the range within some frames
_NARROW = 0.003  # of the gap, each frame: what has left it is forgotten over some ten seconds
_SIGNATURE_PX = (16, 16)
SIGNATURE_FIELDS = 16 * 16


def quantiles(raw: Float32) -> Float32 | None:
    """(257,) float32: the finite values of ``raw`` at even shares of 0..1, first its minimum, last its maximum.

    Enough to find a shot's range without its maps. ``None`` where nothing is finite.
    """
    finite = raw[np.isfinite(raw)]
    return np.quantile(finite, np.linspace(0, 1, _POINTS)).astype(np.float32) if finite.size else None


def of_shot(frames: list[Float32]) -> Range | None:
    """The range of a shot from the ``quantiles`` of its frames: the 0.1 and 99.9 percentiles of all of them together.

    Where those are one value, minimum and maximum; ``None`` where these are one, too, or there is no frame.
    """
    if not frames:
        return None
    together = np.concatenate(frames)
    whole = float(together.min()), float(together.max())
    return of_percentiles(together, _SHOT_PERCENTS) or (whole if whole[1] - whole[0] > _LEAST else None)


@dataclass(frozen=True, slots=True)
class Running:
    """The range of a shot so far, and the last frame in small: (16 * 16) raw values, to see a cut by."""

    low: float
    high: float
    signature: tuple[float, ...]

    def after(self, raw: Float32) -> Running:
        """With one more frame. A cut starts anew; else the range widens fast and narrows slowly.

        A cut is a frame that differs from the one before it, on average over its 256 fields, by more than a quarter
        of the range.
        """
        fresh = first(raw)
        if fresh is None:
            return self
        width = max(self.high - self.low, _LEAST)
        apart = float(np.mean(np.abs(np.subtract(fresh.signature, self.signature)))) / width
        if apart > _CUT:
            return fresh
        return Running(_drawn(self.low, fresh.low, -1), _drawn(self.high, fresh.high, 1), fresh.signature)


def _drawn(end: float, target: float, outwards: int) -> float:
    share = _WIDEN if (target - end) * outwards > 0 else _NARROW
    return end + share * (target - end)


def first(raw: Float32) -> Running | None:
    """The running range of a shot's first frame: its 0.5 and 99.5 percentiles. ``None`` for a map without depth."""
    ends = of_percentiles(raw, _LIVE_PERCENTS)
    if ends is None:
        return None
    plain = np.where(np.isfinite(raw), raw, np.float32(ends[0]))
    small = cv2.resize(plain, _SIGNATURE_PX, interpolation=cv2.INTER_AREA)
    return Running(*ends, tuple(float(value) for value in np.asarray(small).ravel()))
