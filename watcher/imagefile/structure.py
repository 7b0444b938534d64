"""How the formats mark their own end: bounded walks over a file's structure. Imports no decoder, decodes nothing.

Every walk answers with a ``Wholeness``: WHOLE only when the format's own end is where the file ends.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from watcher.frame import Wholeness

_BLOCK = 1 << 20
_MAX_STEPS = 200_000
_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])")


def read_at(file: BinaryIO, at: int, count: int) -> bytes:
    """Up to ``count`` bytes from offset ``at``."""
    file.seek(at)
    return file.read(count)


def ended(end: int, size: int) -> Wholeness:
    """The verdict when the format says that it ends at ``end``: bytes after it are nobody's."""
    if end > size:
        return Wholeness.PARTIAL
    return Wholeness.WHOLE if end == size else Wholeness.UNKNOWN


def jpeg(file: BinaryIO, size: int) -> Wholeness:
    """ITU-T T.81 B.1: a scan must begin, and an EOI must follow it."""
    at = jpeg_scan_start(file, size)
    if at is None:
        return Wholeness.PARTIAL
    if read_at(file, size - 2, 2) == b"\xff\xd9":
        return Wholeness.WHOLE
    end = jpeg_end(file, at, size)
    return Wholeness.PARTIAL if end is None else ended(end, size)


def jpeg_scan_start(file: BinaryIO, size: int) -> int | None:
    """Offset of the first SOS marker, walking the segments before it; None when the file ends first."""
    at = 2
    for _ in range(_MAX_STEPS):
        head = read_at(file, at, 64)
        found = _MARKER.search(head)
        if found is None:
            if len(head) < 64:
                return None
            at += 63
            continue
        code = found[1][0]
        if code == 0xDA:
            return at + found.start(1) - 1
        at += found.end()
        if code in (0x01, 0xD8):
            continue
        if code == 0xD9 or at + 2 > size:
            return None
        at += int.from_bytes(read_at(file, at, 2), "big")
    return None


def jpeg_end(file: BinaryIO, at: int, size: int) -> int | None:
    """Offset just after the EOI that ends the picture whose first SOS is at ``at``; None when there is none."""
    while at < size:
        block = read_at(file, at, _BLOCK)
        found = _MARKER.search(block)
        if found is None:
            at += max(len(block) - 1, 1)
            if len(block) < _BLOCK:
                return None
            continue
        at += found.end()
        if found[1] == b"\xd9":
            return at
        at += int.from_bytes(read_at(file, at, 2), "big")
    return None


def png(file: BinaryIO, size: int) -> Wholeness:
    """PNG 3rd edition, 5.3: chunks add up to an IEND."""
    if size >= 57 and read_at(file, size - 12, 8) == b"\0\0\0\0IEND":
        return Wholeness.WHOLE
    at = 8
    for _ in range(_MAX_STEPS):
        head = read_at(file, at, 8)
        if len(head) < 8:
            return Wholeness.PARTIAL
        if not head[4:].isalpha():
            return Wholeness.PARTIAL if not any(head) else Wholeness.UNKNOWN
        at += 12 + int.from_bytes(head[:4], "big")
        if head[4:] == b"IEND":
            return ended(at, size)
    return Wholeness.UNKNOWN


def riff(file: BinaryIO, size: int) -> Wholeness:
    """WebP container (RFC 9649, 2.3): the size is in the header; an odd size may have a pad byte."""
    head = read_at(file, 0, 12)
    if len(head) < 12:
        return Wholeness.PARTIAL
    end = 8 + int.from_bytes(head[4:8], "little")
    return Wholeness.WHOLE if end % 2 and size == end + 1 else ended(end, size)


def boxes(file: BinaryIO, size: int) -> Wholeness:
    """ISO/IEC 14496-12, 4.2: top-level boxes add up to the file, and a ``meta`` or codestream box is among them."""
    at, kinds = 0, set[bytes]()
    for _ in range(_MAX_STEPS):
        if at == size:
            return Wholeness.WHOLE if kinds & {b"meta", b"jp2c", b"moov"} else Wholeness.PARTIAL
        head = read_at(file, at, 16)
        length, kind = int.from_bytes(head[:4], "big"), head[4:8]
        if len(head) < 8 or not any(head[:8]):
            return Wholeness.PARTIAL
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        if length == 0:
            return Wholeness.UNKNOWN
        if length < 8:
            return Wholeness.UNKNOWN
        kinds.add(kind)
        at += length
        if at > size:
            return Wholeness.PARTIAL
    return Wholeness.UNKNOWN


def jp2(file: BinaryIO, size: int) -> Wholeness:
    """ISO/IEC 15444-1, A.4.4: the codestream ends with EOC."""
    if read_at(file, 0, 2) != b"\xff\x4f":
        verdict = boxes(file, size)
        if verdict is Wholeness.PARTIAL:
            return verdict
    return Wholeness.WHOLE if read_at(file, size - 2, 2) == b"\xff\xd9" else Wholeness.PARTIAL


def gif(file: BinaryIO, size: int) -> Wholeness:
    """GIF89a: blocks up to the trailer 0x3B."""
    end = gif_walk(file, size)[0]
    return Wholeness.PARTIAL if end is None else ended(end, size)


def gif_walk(file: BinaryIO, size: int) -> tuple[int | None, int, int]:
    """(offset after the trailer or None, number of frames, pixels of the first frame), by walking the blocks."""
    screen = read_at(file, 6, 7)
    if len(screen) < 7:
        return None, 0, 0
    at = 13 + (3 << ((screen[4] & 7) + 1) if screen[4] & 0x80 else 0)
    frames = first = 0
    for _ in range(_MAX_STEPS):
        head = read_at(file, at, 11)
        if head[:1] == b"\x3b":
            return at + 1, frames, first
        if head[:1] == b"\x21":
            at += 2
        elif head[:1] == b"\x2c" and len(head) >= 10:
            frames += 1
            width, height = int.from_bytes(head[5:7], "little"), int.from_bytes(head[7:9], "little")
            first = first or width * height
            at += 11 + (3 << ((head[9] & 7) + 1) if head[9] & 0x80 else 0)
        else:
            return None, frames, first
        after = _gif_blocks(file, at, size)
        if after is None:
            return None, frames, first
        at = after
    return None, frames, first


def _gif_blocks(file: BinaryIO, at: int, size: int) -> int | None:
    """Offset after a chain of sub-blocks that begins at ``at``; read in pieces, not byte by byte."""
    while at < size:
        piece = read_at(file, at, 1 << 16)
        here = 0
        while here < len(piece):
            length = piece[here]
            here += 1 + length
            if not length:
                return at + here
        at += here
    return None


def bmp(file: BinaryIO, size: int) -> Wholeness:
    """The file header states the size; when it states none, the rows of an uncompressed picture do."""
    head = read_at(file, 0, 54)
    if len(head) < 26:
        return Wholeness.PARTIAL
    stated = int.from_bytes(head[2:6], "little")
    needed = bmp_bytes(head)
    if needed:
        return (
            Wholeness.PARTIAL if size < needed else Wholeness.WHOLE if size in (needed, stated) else Wholeness.UNKNOWN
        )
    return Wholeness.UNKNOWN if stated < 26 else ended(stated, size)


def bmp_bytes(head: bytes) -> int:
    """Bytes that an uncompressed BMP with this 54-byte header must have; 0 when it is compressed."""
    offset, info = int.from_bytes(head[10:14], "little"), int.from_bytes(head[14:18], "little")
    if info == 12:
        width, height = int.from_bytes(head[18:20], "little"), int.from_bytes(head[20:22], "little")
        bits, method = int.from_bytes(head[24:26], "little"), 0
    else:
        width = int.from_bytes(head[18:22], "little", signed=True)
        height = abs(int.from_bytes(head[22:26], "little", signed=True))
        bits, method = int.from_bytes(head[28:30], "little"), int.from_bytes(head[30:34], "little")
    if method not in (0, 3, 6) or width <= 0:
        return 0
    return offset + (width * bits + 31) // 32 * 4 * height
