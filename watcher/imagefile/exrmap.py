"""EXR maps: one channel of 16- or 32-bit float, scan lines, ZIP compressed, facts as string attributes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from . import exr
from .deflate import compress
from .picture import Array

_LEAD = "depth:"
_LINES = 16  # rows of a ZIP chunk
_ZIP = b"\3"


def encode(array: Array, facts: Mapping[str, str], channel: str = "Z") -> bytes:
    """(H, W) float32 or float16 as an OpenEXR 2.0 file (one part, increasing y) with one FLOAT or HALF channel.

    Source of the layout: the OpenEXR file layout; a pixel type of 1 is HALF, 2 is FLOAT.
    """
    kind = 1 if array.dtype.itemsize == 2 else 2
    height, width = array.shape
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    plane = channel.encode() + b"\0" + struct.pack("<iBxxxii", kind, 0, 1, 1) + b"\0"
    parts = [
        _attribute("channels", "chlist", plane),
        _attribute("compression", "compression", _ZIP),
        _attribute("dataWindow", "box2i", window),
        _attribute("displayWindow", "box2i", window),
        _attribute("lineOrder", "lineOrder", b"\0"),
        _attribute("pixelAspectRatio", "float", struct.pack("<f", 1)),
        _attribute("screenWindowCenter", "v2f", struct.pack("<2f", 0, 0)),
        _attribute("screenWindowWidth", "float", struct.pack("<f", 1)),
        *(_attribute(f"{_LEAD}{key}"[:255], "string", value.encode()) for key, value in facts.items()),
        b"\0",
    ]
    long_names = any(len(_LEAD) + len(key) > 31 for key in facts)
    head = struct.pack("<II", 20000630, 2 | (0x400 if long_names else 0)) + b"".join(parts)
    chunks = [_chunk(array, top) for top in range(0, height, _LINES)]
    at, table = len(head) + 8 * len(chunks), []
    for chunk in chunks:
        table.append(at)
        at += len(chunk)
    return b"".join((head, struct.pack(f"<{len(table)}Q", *table), *chunks))


def _attribute(name: str, kind: str, value: bytes) -> bytes:
    return name.encode("latin-1", "replace") + b"\0" + kind.encode() + b"\0" + struct.pack("<i", len(value)) + value


def _chunk(array: Array, top: int) -> bytes:
    """Sixteen rows: bytes at even places, then at odd ones, each less the one before plus 128, then deflated."""
    raw = (
        np.ascontiguousarray(array[top : top + _LINES], dtype=array.dtype.newbyteorder("<")).view(np.uint8).reshape(-1)
    )
    sorted_ = np.concatenate((raw[0::2], raw[1::2]))
    delta = np.empty_like(sorted_)
    delta[0] = sorted_[0]
    np.subtract(sorted_[1:], sorted_[:-1], out=delta[1:])
    delta[1:] += 128
    packed = compress(delta.tobytes())
    body = packed if len(packed) < len(raw) else raw.tobytes()
    return struct.pack("<ii", top, len(body)) + body


def facts(data: bytes) -> dict[str, str] | None:
    """The facts of an EXR map that ``encode`` wrote, from the beginning of the file; None for any other EXR."""
    attributes = exr.header(data).attributes
    found = {
        key[len(_LEAD) :]: value.decode("utf-8", "replace")
        for key, value in attributes.items()
        if key.startswith(_LEAD)
    }
    return found or None
