"""OpenEXR: the header is read here first, so that sizes and missing chunks are known before the library allocates."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from watcher.errors import Corrupt, Truncated, Unsupported

from .picture import Array, Limits, Stored

_MORE = "Copy or render it again; the file is not all there."
_AGAIN = "Render it again."
_LINES = {0: 1, 1: 1, 2: 1, 3: 16, 4: 32, 5: 16, 6: 32, 7: 32, 8: 32, 9: 256}
_MOST_HEADER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """What is wanted of an EXR's first header. Windows are (x0, y0, x1, y1), inclusive."""

    attributes: dict[str, bytes]
    end: int
    flags: int

    def window(self, name: str) -> tuple[int, int, int, int]:
        raw = self.attributes.get(name, b"")
        if len(raw) != 16:
            raise Corrupt(f"the EXR has no {name}", _AGAIN)
        x0, y0, x1, y1 = struct.unpack("<4i", raw)
        if x1 < x0 or y1 < y0:
            raise Corrupt(f"the {name} of the EXR is empty", _AGAIN)
        return x0, y0, x1, y1


def read(data: bytes, limits: Limits) -> Stored:
    """First part, R G B (or the first layer that has them, or Y, or the only channel) on its display window.

    Outside the data window is black; overscan is cut off: as hosts show it. Linear light of any range.
    """
    found = header(data)
    if found.flags & 0x800:
        raise Unsupported("a deep EXR cannot be read", "Flatten it before export.")
    x0, y0, x1, y1 = found.window("dataWindow")
    frame = found.window("displayWindow")
    limits.check(x1 - x0 + 1, y1 - y0 + 1, len(data))
    limits.check(frame[2] - frame[0] + 1, frame[3] - frame[1] + 1, len(data))
    _check_chunks(data, found, y1 - y0 + 1)
    import OpenEXR  # type: ignore[import-not-found]

    with OpenEXR.File(io.BytesIO(data), separate_channels=True, num_threads=0) as file:
        planes = {name: channel.pixels for name, channel in file.parts[0].channels.items()}
        parts = len(file.parts)
    samples, notes = _chosen(planes, (y1 - y0 + 1, x1 - x0 + 1))
    alpha = planes.get("A")
    shown = _placed(samples, (x0, y0), frame)
    if alpha is not None and alpha.shape == samples.shape[:2]:
        alpha = (np.clip(np.nan_to_num(alpha.astype(np.float32)), 0, 1) * 65535 + 0.5).astype(np.uint16)
        alpha = _placed(alpha, (x0, y0), frame)
    return Stored(
        shown,
        shown.shape[1],
        shown.shape[0],
        alpha=alpha if alpha is not None and alpha.shape == shown.shape[:2] else None,
        bits=min(plane.dtype.itemsize * 8 for plane in planes.values()),
        space="GRAY" if shown.ndim == 2 else "RGB",
        scene=True,
        notes=(*notes, f"first of {parts} parts") if parts > 1 else notes,
    )


def header(data: bytes) -> Header:
    """The first header's attributes (OpenEXR file layout). Raises Truncated or Corrupt."""
    if len(data) < 12:
        raise Truncated("the EXR ends within its header", _MORE)
    (flags,) = struct.unpack("<I", data[4:8])
    attributes, at = {}, 8
    while data[at : at + 1] != b"\0":
        name_end = data.find(b"\0", at, at + 256)
        type_end = data.find(b"\0", name_end + 1, name_end + 257) if name_end > 0 else -1
        if type_end < 0 or type_end + 5 > len(data):
            raise (Truncated if at + 600 > len(data) else Corrupt)("the header of the EXR is damaged", _MORE)
        (length,) = struct.unpack("<I", data[type_end + 1 : type_end + 5])
        start = type_end + 5
        if start + length > len(data):
            raise Truncated("the EXR ends within its header", _MORE)
        attributes[data[at:name_end].decode("latin-1")] = data[start : start + length]
        at = start + length
    return Header(attributes, at + 1, flags)


def _check_chunks(data: bytes, found: Header, rows: int) -> None:
    """Scan-line files: the offset table must be filled, and the last chunk must end inside the file."""
    if found.flags & 0x1A00:  # tiled, deep or multi-part: the library checks those
        return
    lines = _LINES.get((found.attributes.get("compression") or b"\0")[0], 1)
    count = -(-rows // lines)
    table = data[found.end : found.end + 8 * count]
    if len(table) < 8 * count:
        raise Truncated("the EXR ends before its picture does", _MORE)
    offsets = np.frombuffer(table, "<u8")
    if (offsets == 0).any():
        raise Truncated("parts of the EXR were not written", _MORE)
    last = int(offsets.max())
    if last + 8 > len(data) or last + 8 + int.from_bytes(data[last + 4 : last + 8], "little") > len(data):
        raise Truncated("the EXR ends before its picture does", _MORE)


def _chosen(planes: dict[str, Any], shape: tuple[int, int]) -> tuple[Array, tuple[str, ...]]:
    full = {name: plane for name, plane in planes.items() if plane.shape == shape}
    layers = ["", *sorted({name.rpartition(".")[0] + "." for name in full if "." in name})]
    for layer in layers:
        names = [layer + colour for colour in "RGB"]
        if all(name in full for name in names):
            notes = (f"layer {layer[:-1]}",) if layer else ()
            return np.stack([np.asarray(full[name], np.float32) for name in names], axis=-1), notes
    single = next((name for name in ("Y", "R", "Z", *sorted(full)) if name in full and name != "A"), None)
    if single is None:
        raise Unsupported("the EXR has no channel that shows a picture", "Write R, G and B channels.")
    notes = (f"only the channel {single}",) if single != "Y" or "RY" in planes else ()
    return np.asarray(full[single], np.float32), notes


def _placed(samples: Array, origin: tuple[int, int], frame: tuple[int, int, int, int]) -> Array:
    """Samples of the data window, whose corner is ``origin``, on the display window ``frame``."""
    x0, y0, x1, y1 = frame
    height, width = y1 - y0 + 1, x1 - x0 + 1
    left, top = origin[0] - x0, origin[1] - y0
    if (left, top) == (0, 0) and samples.shape[:2] == (height, width):
        return samples
    out = np.zeros((height, width, *samples.shape[2:]), samples.dtype)
    rows = slice(max(top, 0), min(top + samples.shape[0], height))
    columns = slice(max(left, 0), min(left + samples.shape[1], width))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        raise Corrupt("the picture of the EXR lies outside its frame", _AGAIN)
    out[rows, columns] = samples[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    return out
