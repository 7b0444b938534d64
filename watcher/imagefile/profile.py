"""ICC profiles made of curves and a matrix, applied in float: what 16-bit and float pictures need. Pure numpy."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .light import Float32

# Linear sRGB from XYZ under D50 (IEC 61966-2-1 with Bradford adaptation, as in the sRGB v4 ICC profile).
SRGB_FROM_D50 = np.array(
    ((3.1338561, -1.6168667, -0.4906146), (-0.9787684, 1.9161415, 0.0334540), (0.0719453, -0.2289914, 1.4052427))
)
Curve = Callable[[Float32], NDArray[np.floating]]


def to_linear_srgb(values: Float32, icc: bytes) -> Float32 | None:
    """(H, W) gray or (H, W, 3) RGB 0..1 in the profile's space as linear sRGB, same shape; not clipped.

    None when the profile is not of the matrix kind (ICC.1:2022, 8.3.3 and 8.4.3) or is damaged.
    """
    try:
        tags = _tags(icc)
        if values.ndim == 2:
            return np.asarray(_curve(tags[b"kTRC"])(values), np.float32)
        curves = [_curve(tags[name]) for name in (b"rTRC", b"gTRC", b"bTRC")]
        columns = [_xyz(tags[name]) for name in (b"rXYZ", b"gXYZ", b"bXYZ")]
    except (KeyError, ValueError, IndexError, struct.error):
        return None
    matrix = (SRGB_FROM_D50 @ np.array(columns).T).astype(np.float32)
    linear = np.stack([np.asarray(curve(values[..., at]), np.float32) for at, curve in enumerate(curves)], axis=-1)
    return np.asarray(linear @ matrix.T, np.float32)


def _tags(icc: bytes) -> dict[bytes, bytes]:
    if icc[36:40] != b"acsp":
        raise ValueError("not a profile")
    (count,) = struct.unpack(">I", icc[128:132])
    tags = {}
    for at in range(132, 132 + 12 * min(count, 200), 12):
        name, start, length = struct.unpack(">4sII", icc[at : at + 12])
        tags[name] = icc[start : start + length]
    if b"A2B0" in tags:
        raise ValueError("made of tables")
    return tags


def _xyz(tag: bytes) -> tuple[float, float, float]:
    x, y, z = struct.unpack(">3i", tag[8:20])
    return x / 65536, y / 65536, z / 65536


def _curve(tag: bytes) -> Curve:
    """ICC.1:2022, 10.6 (curveType) and 10.18 (parametricCurveType)."""
    if tag[:4] == b"para":
        return _parametric(tag)
    (count,) = struct.unpack(">I", tag[8:12])
    if tag[:4] != b"curv" or count > 65536:
        raise ValueError("not a curve")
    if count == 0:
        return lambda x: x
    if count == 1:
        gamma = struct.unpack(">H", tag[12:14])[0] / 256
        return lambda x: np.power(np.maximum(x, 0), gamma)
    table = np.frombuffer(tag, ">u2", count, 12).astype(np.float32) / 65535
    places = np.linspace(0, 1, count, dtype=np.float32)
    return lambda x: np.interp(x, places, table)


def _parametric(tag: bytes) -> Curve:
    (kind,) = struct.unpack(">H", tag[8:10])
    wanted = (1, 3, 4, 5, 7)[kind]
    given = [value / 65536 for value in struct.unpack(f">{wanted}i", tag[12 : 12 + 4 * wanted])]
    g, a, b, c, d, e, f = (given + [1, 0, 0, 0, 0, 0][len(given) - 1 :])[:7]
    if kind == 1:
        c, d, e, f = 0.0, -b / a, 0.0, 0.0
    elif kind == 2:
        c, d, e, f = 0.0, -b / a, c, c
    elif kind == 0:
        a, b, d = 1.0, 0.0, -1.0
    return lambda x: np.where(x >= d, np.power(np.maximum(a * x + b, 0), g) + e, c * x + f)
