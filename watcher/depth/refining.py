"""Refining: a small map enlarged so that its steps come to lie on the edges of the picture. Pure arithmetic.

Joint bilateral upsampling (Kopf et al., "Joint Bilateral Upsampling", ACM Transactions on Graphics 26(3), 2007): every
pixel of the large map is a mean of the sixteen values of the small one around it; the closer a value lies, and the more
alike the picture's lightness is there and here, the more it counts. A mean never leaves the range of what it is made
of, so unlike a guided filter this neither copies the picture's pattern into the map nor overshoots.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from watcher.frame import Float32

_MOST_PX = 50_000_000  # of a guide; a larger picture guides by its half, quarter …
_BAND_PX = 1 << 20
_NEAR = 0.6  # standard deviation of the distance, in pixels of the small map
_ALIKE = 6.0  # standard deviation of lightness, of 255; found on the selection pairs: python -m bench.refine
_EQUAL = 1e-3  # what a value counts for however unlike: where none is alike, distance alone decides
_TAPS = (-1, 0, 1, 2)
_FULL = {"uint8": 1.0, "uint16": 257.0, "float32": 1 / 255.0}
_CONSTANT = float(np.finfo(np.float64).eps)
_WIDE = 1e30  # beyond this, sums of float32 values may overflow


def guide_of(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """The lightness (H, W) uint8 of a picture (H, W, 3) RGB uint8, uint16 or float32 0..1; beyond 50 megapixels of
    every second, fourth … pixel, averaged, so that what travels with a frame stays below 50 MB.
    """
    height, width = pixels.shape[:2]
    light = np.empty((height, width), np.uint8)
    band = max(1, _BAND_PX // width)
    for top in range(0, height, band):
        part = np.ascontiguousarray(pixels[top : top + band])
        if part.dtype != np.uint8:
            part = np.clip(part.astype(np.float32) / np.float32(_FULL[part.dtype.name]) + 0.5, 0, 255).astype(np.uint8)
        light[top : top + band] = cv2.cvtColor(part, cv2.COLOR_RGB2GRAY)
    while light.size > _MOST_PX:
        light = np.asarray(cv2.resize(light, (light.shape[1] // 2, light.shape[0] // 2), interpolation=cv2.INTER_AREA))
    return light


def snapped(raw: Float32, guide: NDArray[np.uint8]) -> tuple[Float32, int]:
    """The raw depth at the guide's size, its steps on the guide's edges; and how many values were not finite.

    ``raw`` (h, w) float32, relative inverse depth, any values; those that are not finite become 0. ``guide`` (H, W)
    uint8. Returns (H, W) float32 within the range of ``raw``; ``raw`` itself where there is nothing to refine: a guide
    that is no larger, a map without depth, or without a finite value. Time grows with the guide's pixels, and beside
    the result only bands of it are held.
    """
    finite = np.isfinite(raw)
    bad = int(raw.size - np.count_nonzero(finite))
    if bad == raw.size or guide.shape[0] <= raw.shape[0] or guide.shape[1] <= raw.shape[1]:
        return raw, 0
    clean = np.where(finite, raw, np.float32(0)) if bad else raw
    low, high = float(clean.min()), float(clean.max())
    if not high - low > _CONSTANT or max(abs(low), abs(high)) > _WIDE:
        return raw, 0
    small = np.asarray(cv2.resize(guide, clean.shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    depth = np.empty(guide.shape, np.float32)
    rows, columns = (_Axis(clean.shape[axis], guide.shape[axis]) for axis in (0, 1))
    band = max(1, _BAND_PX // guide.shape[1])
    for top in range(0, guide.shape[0], band):
        part = slice(top, top + band)
        depth[part] = _band(clean, small, guide[part], rows.part(part), columns)
    return np.clip(depth, low, high, out=depth), bad


class _Axis:
    """For each tap along one axis: which small pixel it is for each large one, and what its distance lets it count."""

    def __init__(self, small: int, large: int) -> None:
        at = (np.arange(large) + 0.5) * small / large - 0.5
        first = np.floor(at).astype(np.intp)
        self.index = [np.clip(first + tap, 0, small - 1) for tap in _TAPS]
        self.weight = [np.exp(-((first + tap - at) ** 2) / (2 * _NEAR**2)).astype(np.float32) for tap in _TAPS]

    def part(self, rows: slice) -> _Axis:
        piece = object.__new__(_Axis)
        piece.index, piece.weight = [each[rows] for each in self.index], [each[rows] for each in self.weight]
        return piece


_ALIKENESS = (np.exp(-(np.arange(256.0) ** 2) / (2 * _ALIKE**2)) + _EQUAL).astype(np.float32)


def _band(
    clean: Float32, small: NDArray[np.uint8], guide: NDArray[np.uint8], rows: _Axis, columns: _Axis
) -> NDArray[np.float32]:
    total = np.zeros(guide.shape, np.float32)
    weights = np.zeros(guide.shape, np.float32)
    for at_row, by_row in zip(rows.index, rows.weight, strict=True):
        row_light, row_depth = small[at_row], clean[at_row]
        for at_column, by_column in zip(columns.index, columns.weight, strict=True):
            weight = _ALIKENESS[cv2.absdiff(guide, np.take(row_light, at_column, axis=1))]
            weight *= by_row[:, None]
            weight *= by_column
            weights += weight
            weight *= np.take(row_depth, at_column, axis=1)
            total += weight
    return np.divide(total, weights, out=total)
