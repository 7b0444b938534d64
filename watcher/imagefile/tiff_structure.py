"""The directories of a TIFF, as far as its completeness and its orientation need them. Imports no decoder."""

from __future__ import annotations

import struct
from typing import BinaryIO

from watcher.frame import Wholeness

from .structure import read_at

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_CODES = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}
_MAX_VALUES = 1 << 20
ORIENTATION, STRIP_OFFSETS, STRIP_BYTES, TILE_OFFSETS, TILE_BYTES = 274, 273, 279, 324, 325
_WANTED = frozenset((ORIENTATION, STRIP_OFFSETS, STRIP_BYTES, TILE_OFFSETS, TILE_BYTES))


class CutShort(ValueError):
    """A directory or a value lies beyond the end of the file."""


def first_directory(file: BinaryIO, size: int) -> dict[int, tuple[int, ...]]:
    """Tag to values, of the first directory (TIFF 6.0 section 2; BigTIFF), for the few tags that are wanted here.

    Raises CutShort when the directory or one of its values lies outside the file, ValueError when it is no TIFF.
    """
    head = read_at(file, 0, 16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if order is None or len(head) < 8:
        raise ValueError("not a TIFF")
    big = struct.unpack(order + "H", head[2:4])[0] == 43
    at = _number(head[8:16], order + "Q") if big else _number(head[4:8], order + "I")
    count = _number(read_at(file, at, 8 if big else 2), order + ("Q" if big else "H"))
    step = 20 if big else 12
    if at + count * step > size or count > 65_535:
        raise CutShort("the directory is cut off")
    table = read_at(file, at + (8 if big else 2), count * step)
    tags: dict[int, tuple[int, ...]] = {}
    for start in range(0, len(table) - step + 1, step):
        entry = table[start : start + step]
        tag, kind = struct.unpack(order + "HH", entry[:4])
        if tag in _WANTED and kind in _CODES:
            tags[tag] = _values(file, size, entry, order, big)
    return tags


def _values(file: BinaryIO, size: int, entry: bytes, order: str, big: bool) -> tuple[int, ...]:
    (kind,) = struct.unpack(order + "H", entry[2:4])
    entry, wide, half = entry[4:], order + ("Q" if big else "I"), 8 if big else 4
    count = _number(entry[:half], wide)
    length = count * _SIZES[kind]
    if count > _MAX_VALUES:
        raise ValueError("too many values")
    raw = entry[half : half + length]
    if length > half:
        at = _number(entry[half:], wide)
        if at + length > size:
            raise CutShort("a value is cut off")
        raw = read_at(file, at, length)
    return struct.unpack(f"{order}{count}{_CODES[kind]}", raw)


def _number(raw: bytes, code: str) -> int:
    if len(raw) < struct.calcsize(code):
        raise CutShort("the directory is cut off")
    return int(struct.unpack(code, raw[: struct.calcsize(code)])[0])


def wholeness(file: BinaryIO, size: int) -> Wholeness:
    """PARTIAL when the first picture's directory or strips lie outside the file, else UNKNOWN: TIFF has no end mark."""
    try:
        tags = first_directory(file, size)
    except CutShort:
        return Wholeness.PARTIAL
    offsets = tags.get(STRIP_OFFSETS) or tags.get(TILE_OFFSETS) or ()
    counts = tags.get(STRIP_BYTES) or tags.get(TILE_BYTES) or ()
    end = max((at + count for at, count in zip(offsets, counts, strict=False)), default=0)
    return Wholeness.PARTIAL if end > size else Wholeness.UNKNOWN


def orientation(file: BinaryIO, size: int) -> int:
    """EXIF/TIFF orientation 1..8 of the first directory; 1 when there is none, or it is damaged."""
    try:
        values = first_directory(file, size).get(ORIENTATION, (1,))
    except (ValueError, struct.error):
        return 1
    return values[0] if values and 1 <= values[0] <= 8 else 1
