"""Ranges: which raw values become the two ends of the scale. Pure arithmetic, numpy alone."""

from __future__ import annotations

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
