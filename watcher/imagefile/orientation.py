"""EXIF orientation: read from a block of EXIF, applied to an array. Imports no decoder."""

from __future__ import annotations

import io

import numpy as np

from . import tiff_structure
from .picture import Array


def from_exif(block: bytes) -> int:
    """Orientation 1..8 of an EXIF block, with or without its lead; 1 when absent, out of range or damaged."""
    block = block[6:] if block.startswith(b"Exif\0") else block
    return tiff_structure.orientation(io.BytesIO(block), len(block))


def upright(array: Array, orientation: int) -> Array:
    """(h, w[, c]) as stored to upright, without copying; EXIF 2.32, tag 274. 5..8 swap the sides."""
    if orientation in (2, 3):
        array = array[:, ::-1]
    if orientation in (3, 4):
        array = array[::-1]
    if orientation >= 5:
        array = np.swapaxes(array, 0, 1)
        if orientation in (6, 7):
            array = array[:, ::-1]
        if orientation in (7, 8):
            array = array[::-1]
    return array


def swaps_sides(orientation: int) -> bool:
    """Whether the upright picture is as wide as the stored one is tall."""
    return orientation >= 5
