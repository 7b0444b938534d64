"""Maps for the eye: a coloured preview, and a sheet of pictures beside their maps. Never the data itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from watcher.errors import UsageError

from .picture import Array

COLOURS: tuple[str, ...] = ("inferno", "turbo", "magma", "gray")
_QUALITY = 90
_GAP_PX = 12
_PAPER = 245


def preview(map01: Array, colours: str, beside: Array | None = None) -> bytes:
    """A JPEG of a map (H, W), float 0..1 or uint16, in ``inferno``, ``turbo``, ``magma`` or ``gray``.

    ``beside`` (h, w, 3) uint8 RGB: the picture, which is put to the left; the map is brought to its size.
    Raises UsageError for other colours.
    """
    if beside is None:
        return _jpeg(coloured(map01, colours))
    import cv2

    height, width = beside.shape[:2]
    fitted = np.asarray(cv2.resize(map01, (width, height), interpolation=cv2.INTER_AREA))
    gap = np.full((height, _GAP_PX, 3), _PAPER, np.uint8)
    return _jpeg(np.concatenate((beside, gap, coloured(fitted, colours)), axis=1))


def coloured(map01: Array, colours: str) -> Array:
    """(H, W) float 0..1 or uint16 as (H, W, 3) uint8 RGB; values outside 0..1 are clipped, NaN counts as 0."""
    import cv2

    if colours not in COLOURS:
        raise UsageError(f"there are no preview colours {colours!r}", f"Use one of: {', '.join(COLOURS)}.")
    gray = _eight_bits(map01)
    if colours == "gray":
        return np.repeat(gray[..., None], 3, axis=2)
    table = {"inferno": cv2.COLORMAP_INFERNO, "turbo": cv2.COLORMAP_TURBO, "magma": cv2.COLORMAP_MAGMA}[colours]
    return np.asarray(cv2.cvtColor(cv2.applyColorMap(gray, table), cv2.COLOR_BGR2RGB))


def contact_sheet(pairs: Sequence[tuple[Array, Array]], width_px: int) -> bytes:
    """A JPEG of ``width_px``: each row a picture (h, w, 3) uint8 RGB and its map (h, w) uint16, equally large.

    Raises ValueError when there is no pair.
    """
    if not pairs:
        raise ValueError("a contact sheet needs at least one pair")
    column = max((width_px - 3 * _GAP_PX) // 2, 8)
    rows = [_row(picture, map_, column) for picture, map_ in pairs]
    gap = np.full((_GAP_PX, rows[0].shape[1], 3), _PAPER, np.uint8)
    return _jpeg(np.concatenate([gap, *(part for row in rows for part in (row, gap))]))


def _row(picture: Array, map_: Array, column: int) -> Array:
    import cv2

    size = column, max(1, round(picture.shape[0] * column / picture.shape[1]))
    fitted = [
        cv2.resize(side, size, interpolation=cv2.INTER_AREA)
        for side in (np.ascontiguousarray(picture), coloured(map_, "gray"))
    ]
    gap = np.full((size[1], _GAP_PX, 3), _PAPER, np.uint8)
    return np.asarray(np.concatenate((gap, fitted[0], gap, fitted[1], gap), axis=1))


def thumbnail(pixels: Array, most_px: int) -> bytes:
    """A JPEG no larger than ``most_px`` on either side, of (H, W) or (H, W, 3) RGB, uint8, uint16 or float 0..1."""
    small = smaller(pixels, most_px)
    return _jpeg(small if small.ndim == 3 else np.repeat(small[..., None], 3, axis=2))


def smaller(pixels: Array, most_px: int) -> Array:
    """(h, w) or (h, w, 3) uint8, no larger than ``most_px`` on either side, of uint8, uint16 or float 0..1 pixels."""
    import cv2

    scale = min(1.0, most_px / max(pixels.shape[:2]))
    size = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
    return _eight_bits(np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=cv2.INTER_AREA)))


def _eight_bits(map01: Array) -> Array:
    if map01.dtype == np.uint8:
        return np.ascontiguousarray(map01)
    if map01.dtype == np.uint16:
        return np.asarray(map01 >> 8, np.uint8)
    return np.asarray(np.clip(np.nan_to_num(map01), 0, 1) * 255 + 0.5).astype(np.uint8)


def _jpeg(rgb: Array) -> bytes:
    import cv2

    done, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise ValueError("the preview could not be encoded")
    return data.tobytes()
