"""Light to display: the transforms that bring float, linear and HDR pictures to sRGB 0..1. Pure numpy.

All arrays are (..., 3) or (...) float32; linear means proportional to light, 1.0 = diffuse white.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from watcher.errors import Corrupt

from .picture import Array

Float32 = NDArray[np.float32]

SHOULDER = 0.8
"""Linear light up to which the display transform is the sRGB curve exactly; brighter light is compressed to 1."""

_KEY_LOW, _KEY_HIGH = 0.18 / 4, 0.18 * 4
_LUMA = np.array((0.2126, 0.7152, 0.0722), np.float32)  # ITU-R BT.709
_TO_BT709: dict[int, tuple[tuple[float, ...], ...]] = {
    # ITU-R BT.2087-0, annex 2, inverted; primaries 9 = BT.2020
    9: ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187)),
    # SMPTE EG 432-1 (D65) to BT.709; primaries 12 = Display P3
    12: ((1.2249, -0.2247, 0.0), (-0.0420, 1.0419, 0.0), (-0.0197, -0.0786, 1.0979)),
}
NAMED_PRIMARIES = {9: "BT.2020", 12: "Display P3"}


def finite(values: Array) -> tuple[Float32, int]:
    """(values with NaN as 0 and infinities as the largest finite value, how many were replaced), float32.

    Raises Corrupt when no value is finite.
    """
    data = np.asarray(values, np.float32)
    good = np.isfinite(data)
    bad = data.size - int(np.count_nonzero(good))
    if not bad:
        return data, 0
    if bad == data.size:
        raise Corrupt("no pixel of the picture holds a number (all are NaN or infinite)", "Render or export it again.")
    top = float(data[good].max())
    return np.nan_to_num(data, nan=0.0, posinf=top, neginf=0.0), bad


def encode_srgb(linear: Float32) -> Float32:
    """Linear 0..1 to sRGB 0..1 (IEC 61966-2-1)."""
    x = np.clip(linear, 0.0, 1.0)
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * np.power(x, 1 / 2.4) - 0.055).astype(np.float32)


def decode_srgb(display: Float32) -> Float32:
    """sRGB 0..1 to linear 0..1 (IEC 61966-2-1)."""
    x = np.clip(display, 0.0, 1.0)
    return np.where(x <= 0.04045, x / 12.92, np.power((x + 0.055) / 1.055, 2.4)).astype(np.float32)


def exposure_stops(linear: Float32) -> int:
    """Whole stops that bring the picture's log-average light to within two stops of middle grey; mostly 0.

    Whole stops with a wide dead band, so that the frames of a shot get the same exposure. Log-average: Reinhard et
    al., "Photographic Tone Reproduction for Digital Images", 2002, equation 1.
    """
    light = linear @ _LUMA if linear.ndim == 3 else linear
    lit = light[light > 1e-6]
    if not lit.size:
        return 0
    key = float(np.exp(np.mean(np.log(lit), dtype=np.float64)))
    if _KEY_LOW <= key <= _KEY_HIGH:
        return 0
    edge = _KEY_LOW if key < _KEY_LOW else _KEY_HIGH
    exact = float(np.log2(edge / key))
    return int(np.ceil(exact) if exact > 0 else np.floor(exact))


def display(linear: Float32) -> tuple[Float32, int]:
    """(linear light of any range as sRGB 0..1, exposure in stops that was applied).

    Exposure in whole stops; the sRGB curve; above ``SHOULDER`` light x becomes 1 - (1-s)^2 / (x + 1 - 2s), which
    continues value and slope at s and reaches 1 at infinity.
    """
    stops = exposure_stops(linear)
    x = np.maximum(linear * np.float32(2.0**stops), 0.0)
    room = 1.0 - SHOULDER
    bright = np.maximum(x, SHOULDER)
    x = np.where(x > SHOULDER, 1.0 - room * room / (bright + 1.0 - 2.0 * SHOULDER), x)
    return encode_srgb(x.astype(np.float32)), stops


def from_pq(signal: Float32) -> Float32:
    """SMPTE ST 2084 signal 0..1 to linear light, 1.0 = 203 cd/m2 (ITU-R BT.2408 reference white)."""
    m1, m2, c1, c2, c3 = 1305 / 8192, 2523 / 32, 107 / 128, 2413 / 128, 2392 / 128
    root = np.power(np.clip(signal, 0.0, 1.0), 1 / m2)
    light = np.power(np.maximum(root - c1, 0.0) / (c2 - c3 * root), 1 / m1)
    return (light * (10_000 / 203)).astype(np.float32)


def from_hlg(signal: Float32) -> Float32:
    """ARIB STD-B67 signal 0..1 to display light at 1000 cd/m2, 1.0 = 203 cd/m2 (ITU-R BT.2100-2, table 5)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    x = np.clip(signal, 0.0, 1.0)
    scene = np.where(x <= 0.5, x * x / 3.0, (np.exp((x - c) / a) + b) / 12.0)
    luma = np.maximum(scene @ np.array((0.2627, 0.6780, 0.0593)), 1e-9)[..., None]
    return np.asarray(scene * np.power(luma, 0.2) * (1000 / 203), np.float32)


def from_coded(signal: Float32, primaries: int, transfer: int) -> tuple[Float32, bool]:
    """(RGB signal 0..1 in a coding of ITU-T H.273 as BT.709 linear light, whether its range is high dynamic)."""
    hdr = transfer in (16, 18)
    if transfer == 16:
        linear = from_pq(signal)
    elif transfer == 18:
        linear = from_hlg(signal)
    else:
        linear = signal if transfer == 8 else decode_srgb(signal)
    matrix = _TO_BT709.get(primaries)
    if matrix is not None:
        linear = np.maximum(linear @ np.array(matrix, np.float32).T, 0.0)
    return linear.astype(np.float32), hdr


def coded_is_srgb(primaries: int, transfer: int) -> bool:
    """Whether code points of ITU-T H.273 need no conversion (unspecified counts as sRGB)."""
    return primaries not in _TO_BT709 and transfer not in (8, 16, 18)
