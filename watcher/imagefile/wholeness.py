"""What the bytes of a file say about their own completeness, before anything is decoded. Imports no decoder."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import BinaryIO

from watcher.frame import Wholeness

from . import structure, tiff_structure
from .sniff import HEAD_BYTES, sniff

_ZERO_TAIL_BYTES = 512

_WALKS: dict[str, Callable[[BinaryIO, int], Wholeness]] = {
    "jpeg": structure.jpeg,
    "png": structure.png,
    "webp": structure.riff,
    "heif": structure.boxes,
    "avif": structure.boxes,
    "jp2": structure.jp2,
    "gif": structure.gif,
    "bmp": structure.bmp,
    "tiff": tiff_structure.wholeness,
}
# Containers that state their size in front and end in compressed data: zeros there are space that a copy reserved.
SIZED_IN_FRONT = frozenset(("webp", "heif", "avif", "jp2"))


def wholeness(file: BinaryIO, size: int) -> Wholeness:
    """Judge an open file of ``size`` bytes by its structure alone.

    WHOLE: the format's own end is the file's end. PARTIAL: the format says that bytes are missing (also: empty,
    or a tail of zeros that a copying program reserved). UNKNOWN: the format cannot tell, there are bytes after its
    end, or it is no picture. Reads a bounded number of blocks; never raises on what the bytes are. An ``OSError`` of
    the volume passes through.
    """
    try:
        head = structure.read_at(file, 0, HEAD_BYTES)
        if not head.strip(b"\0"):
            return Wholeness.PARTIAL
        format_ = sniff(head) or ("jpeg" if head in (b"\xff", b"\xff\xd8") else None)
        if format_ is None:
            return Wholeness.UNKNOWN
        if format_ in SIZED_IN_FRONT and size > _ZERO_TAIL_BYTES and _zero_tail(file, size):
            return Wholeness.PARTIAL
        walk = _WALKS.get(format_)
        return walk(file, size) if walk else Wholeness.UNKNOWN
    except (ValueError, IndexError, OverflowError, struct.error):
        return Wholeness.UNKNOWN


def _zero_tail(file: BinaryIO, size: int) -> bool:
    return not any(structure.read_at(file, size - _ZERO_TAIL_BYTES, _ZERO_TAIL_BYTES))
