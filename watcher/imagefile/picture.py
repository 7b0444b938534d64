"""The values that readers hand on: what a file holds, and the upright picture that becomes a frame's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watcher.errors import TooLarge

Array = NDArray[Any]
Bytes = NDArray[np.uint8]

BOMB_PIXELS = 50_000_000
BOMB_PIXELS_PER_BYTE = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """An upright picture, ready for ``depth``.

    ``pixels`` (H, W, 3) RGB, uint8 0..255 | uint16 0..65535 | float32 0..1, sRGB, display-referred.
    ``height_px``/``width_px``: upright size of the source; ``pixels`` may be smaller when reduced decoding was allowed.
    ``alpha`` (H, W) of the pixels' size, uint8 | uint16, 0 = transparent, or None; ``pixels`` are as stored below it.
    ``bits`` per sample as stored. ``orientation`` 1..8 as stored (already applied). ``notes``: what a person may want
    to know ("first of 9 frames").
    """

    pixels: Array
    height_px: int
    width_px: int
    alpha: Array | None = None
    format: str = ""
    bits: int = 8
    orientation: int = 1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader may do: pixels it may allocate, and how many pixels a side are enough (0: all of them)."""

    max_pixels: int
    min_side_px: int = 0

    def check(self, width: int, height: int, file_bytes: int) -> None:
        """Raise TooLarge from a header's size, before anything is allocated.

        Beside the limit itself: a picture of more than 50 megapixels that claims more than 20 000 pixels a byte is a
        decompression bomb (real pictures stay below 9 000: one-bit PNG at deflate's limit of 1032:1).
        """
        pixels = width * height
        if pixels > self.max_pixels:
            raise TooLarge(
                f"the picture has {width} x {height} pixels, more than the limit of {self.max_pixels:,}",
                "Raise limits.max_pixels in config.yaml, or make the picture smaller.",
            )
        if pixels > BOMB_PIXELS and pixels > BOMB_PIXELS_PER_BYTE * file_bytes:
            raise TooLarge(
                f"{file_bytes} bytes claim to be {width} x {height} pixels: this is made to fill memory",
                "Do not trust the file. If it is real, save it again in another format.",
            )

    def factor(self, width: int, height: int) -> int:
        """The largest whole reduction that leaves at least ``min_side_px`` pixels on each side; 1 when none does."""
        return max(1, min(width, height) // self.min_side_px) if self.min_side_px > 0 else 1


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """What a reader found, as stored.

    ``samples`` (h, w) | (h, w, 3) | (h, w, 4 for CMYK), uint8 | uint16 | float32; may be reduced. ``width``/``height``
    as stored. ``space``: RGB, GRAY, CMYK or LAB. What the numbers mean, the first that is given: ``icc`` profile,
    ``coded`` (primaries, transfer) of ITU-T H.273, ``gamma`` of a PNG (0.45455 is sRGB); else sRGB.
    ``scene``: float samples are linear light of any range.
    """

    samples: Array
    width: int
    height: int
    alpha: Array | None = None
    bits: int = 8
    orientation: int = 1
    space: str = "RGB"
    icc: bytes | None = None
    coded: tuple[int, int] | None = None
    gamma: float | None = None
    scene: bool = False
    notes: tuple[str, ...] = ()
