"""Masking: pixels that the picture does not show become far."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from watcher.depth.ranges import Range


def mask_far(values: NDArray[Any], alpha: NDArray[np.uint8], span: Range, near: str) -> int:
    """Set the pixels of a finished map to far, in place, where ``alpha`` is below one half; returns how many.

    ``values`` (H, W) uint8, uint16 or float32, as ``finish`` made them; ``alpha`` (h, w) uint8, 0 = transparent,
    of any size (linear between its pixels). Far is the ``span``'s low end: 0 in integer maps, its full value with
    ``near="black"``; in float maps the low end itself, mirrored to the high end with ``near="black"``.
    """
    height, width = values.shape
    fitted = np.asarray(cv2.resize(alpha, (width, height), interpolation=cv2.INTER_LINEAR))
    hidden = fitted < 128
    if values.dtype.kind == "f":
        far: float = span[1] if near == "black" else span[0]
    else:
        far = float(np.iinfo(values.dtype).max) if near == "black" else 0.0
    values[hidden] = far
    return int(np.count_nonzero(hidden))
