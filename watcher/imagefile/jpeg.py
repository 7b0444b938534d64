"""JPEG: the segments that matter are picked out, the end is checked, the rest goes to the decoder."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

import numpy as np

from watcher.errors import Corrupt, Truncated, Unsupported

from . import jpeg_scans, orientation
from .picture import Array, Limits, Stored
from .structure import jpeg_end

_FILL = re.compile(rb"\xff+([^\x00\xff])")
_SIZED = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DECODED = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))
_ARITHMETIC = frozenset((0xC9, 0xCA))
_KEPT = frozenset((0xC4, 0xCC, 0xDB, 0xDD, 0xE0, 0xEE))  # tables, restart interval, JFIF, Adobe
_MORE = "Copy it again; the file is not all there."


@dataclass(slots=True)
class Segments:
    """What stands before the first scan."""

    kept: list[bytes] = field(default_factory=list)
    scan: int = 0
    sof: int = 0
    bits: int = 8
    width: int = 0
    height: int = 0
    components: int = 0
    orientation: int = 1
    icc: dict[int, bytes] = field(default_factory=dict)
    several: bool = False
    shape: jpeg_scans.Shape = field(default_factory=jpeg_scans.Shape)
    interval: int = 0


def read(data: bytes, limits: Limits) -> Stored:
    """ITU-T T.81 and T.872. 8-bit baseline, extended and progressive; DCT-scaled when fewer pixels are enough."""
    found = segments(data)
    if found.sof not in _DECODED or found.bits != 8:
        kind = "lossless" if found.sof in (0xC3, 0xCB) else f"{found.bits}-bit" if found.bits != 8 else "hierarchical"
        raise Unsupported(f"a {kind} JPEG cannot be read", "Save it as an 8-bit JPEG, or as TIFF or PNG.")
    limits.check(found.width, found.height, len(data))
    end = jpeg_end(io.BytesIO(data), found.scan, len(data)) if data[-2:] != b"\xff\xd9" else len(data)
    if end is None:
        raise Truncated("the JPEG ends before its picture does", _MORE)
    clean = b"".join((b"\xff\xd8", *found.kept, data[found.scan : end]))
    scans = jpeg_scans.check(data[found.scan : end], found.shape, found.interval)
    samples = _decode(clean, limits.factor(found.width, found.height))
    # A cut in a later scan leaves no trace that is seen in the samples: only decoding once more tells.
    suspicious = found.sof not in _ARITHMETIC and (scans > 1 or _flat_at_the_end(samples, found.height))
    if suspicious and _short(clean, limits.factor(found.width, found.height), samples):
        raise Truncated("the JPEG has an end mark but its picture is not all there", _MORE)
    return Stored(
        samples,
        found.width,
        found.height,
        orientation=found.orientation,
        space={1: "GRAY", 4: "CMYK"}.get(found.components, "RGB"),
        icc=b"".join(found.icc[at] for at in sorted(found.icc)) or None,
        notes=("first of several pictures",) if found.several else (),
    )


def segments(data: bytes) -> Segments:
    """Walk the marker segments up to the first scan (T.81 B.1.1). Raises Truncated or Corrupt."""
    found, at = Segments(), 2
    while True:
        marker = _FILL.search(data, at)
        if marker is None or marker.end() + 2 > len(data):
            raise Truncated("the JPEG ends within its header", _MORE)
        code, at = marker[1][0], marker.end()
        if code == 0xDA:
            found.scan = marker.start(1) - 1
            break
        if code == 0xD9:
            raise Corrupt("the JPEG holds no picture", "Export it again.")
        if code in (0x01, 0xD8) or 0xD0 <= code <= 0xD7:
            continue
        length = int.from_bytes(data[at : at + 2], "big")
        if length < 2:
            raise Corrupt("a segment of the JPEG has no length", "Export it again.")
        if at + length > len(data):
            raise Truncated("the JPEG ends within its header", _MORE)
        _take(found, code, data[at - 2 : at + length])
        at += length
    if not found.sof or not found.width or not found.height:
        raise Corrupt("the JPEG does not say how large it is", "Export it again.")
    return found


def _take(found: Segments, code: int, segment: bytes) -> None:
    body = segment[4:]
    if code in _SIZED and len(body) >= 6:
        found.sof, found.bits, found.components = code, body[0], body[5]
        found.height, found.width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
        found.shape = jpeg_scans.shape_of(code, body)
        found.kept.append(b"\xff" + bytes((code,)) + segment[2:])
    elif code in _KEPT:
        found.interval = int.from_bytes(body[:2], "big") if code == 0xDD else found.interval
        found.kept.append(b"\xff" + bytes((code,)) + segment[2:])
    elif code == 0xE1 and body.startswith(b"Exif\0"):
        found.orientation = orientation.from_exif(body)
    elif code == 0xE2 and body.startswith(b"ICC_PROFILE\0") and len(body) > 14:
        found.icc[body[12]] = body[14:]
    elif code == 0xE2 and body.startswith(b"MPF\0"):
        found.several = True


def _decode(clean: bytes, factor: int) -> Array:
    """(h, w[, 3 or 4]) uint8 by libjpeg; h and w divided by 1, 2, 4 or 8, never by more than ``factor``."""
    from .library import open_image

    with open_image(clean, "JPEG") as image:
        if factor >= 2 and image.mode in ("L", "RGB"):
            scale = 8 if factor >= 8 else 4 if factor >= 4 else 2
            image.draft(image.mode, (image.width // scale, image.height // scale))
        return np.asarray(image)


def _flat_at_the_end(samples: Array, height: int) -> bool:
    """Whether the picture of that height ends in pixels of one colour: what libjpeg paints where the data ran out.

    It paints whole blocks, so where the last one is all there, its lower half must be flat too; not its upper half,
    which colours of the blocks above may reach into. Few pictures end so, and only they are decoded twice.
    """
    block = max(1, round(8 * len(samples) / height))  # rows of samples that were one row of blocks
    rows = max(1, block // 2) if len(samples) % block == 0 else 1
    last = samples[-rows:, -4:] if samples.shape[1] > 64 else samples[-rows:, -2:]
    return bool((last == last[-1:, -1:]).all()) and samples.shape[1] > 1


def _short(clean: bytes, factor: int, samples: Array) -> bool:
    """Whether the scan ended too early: a complete picture ignores what follows its last block, a short one eats it."""
    noise = np.random.default_rng(0).integers(0, 255, 4096, np.uint8).tobytes()
    try:
        # A last 0xFF would make a marker of the first byte of noise, and end the scan before it is read.
        again = _decode(clean.removesuffix(b"\xff\xd9").rstrip(b"\xff") + noise + b"\xff\xd9", factor)
    except (OSError, SyntaxError, ValueError):
        return False
    return not np.array_equal(again, samples)
