"""PNG: chunks are checked and picked, the decoder sees only those that carry pixels."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

import numpy as np

from watcher.errors import Corrupt, Truncated

from . import orientation
from .picture import Array, Limits, Stored

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NOTED = frozenset((b"iCCP", b"cICP", b"sRGB", b"gAMA", b"eXIf", b"acTL", b"zTXt", b"tEXt"))
_MOST_PROFILE_BYTES = 8 << 20
_MOST_TEXT_BYTES = 1 << 18
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_MORE = "Copy it again; the file is not all there."
_AGAIN = "Export it again."


@dataclass(slots=True)
class Chunks:
    kept: list[bytes] = field(default_factory=list)
    noted: dict[bytes, bytes] = field(default_factory=dict)
    header: bytes = b""
    data_bytes: int = 0


def read(data: bytes, limits: Limits) -> Stored:
    """PNG 3rd edition: 1 to 16 bits, gray, palette, alpha, tRNS, interlaced; an APNG gives its still picture."""
    chunks = _walk(data)
    width, height = int.from_bytes(chunks.header[:4], "big"), int.from_bytes(chunks.header[4:8], "big")
    bits, kind = chunks.header[8], chunks.header[9]
    if not width or not height or bits not in _DEPTHS.get(kind, ()):
        raise Corrupt("the header of the PNG makes no sense", _AGAIN)
    limits.check(width, height, len(data))
    if not chunks.data_bytes:
        raise Corrupt("the PNG holds no pixels", _AGAIN)
    samples, alpha = _decode(b"".join((_SIGNATURE, *chunks.kept)), bits)
    if samples.shape[:2] != (height, width):
        raise Corrupt("the PNG decodes to another size than it states", _AGAIN)
    noted = chunks.noted
    coded = noted.get(b"cICP", b"")
    return Stored(
        samples,
        width,
        height,
        alpha=alpha,
        bits=bits,
        orientation=_orientation(noted),
        space="GRAY" if samples.ndim == 2 else "RGB",
        icc=_profile(noted.get(b"iCCP", b"")) if not coded else None,
        coded=(coded[0], coded[1]) if len(coded) == 4 else None,
        gamma=_gamma(noted) if not coded else None,
        notes=("still picture of an animation",) if b"acTL" in noted else (),
    )


def _walk(data: bytes) -> Chunks:
    """Check every chunk (lengths, order of the ends, checksums of the critical ones)."""
    chunks, at = Chunks(), 8
    while True:
        if at + 12 > len(data):
            raise Truncated("the PNG ends before its picture does", _MORE)
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if not any(data[at : at + 8]):
            raise Truncated("the PNG continues with zeros: its copy was not finished", _MORE)
        if not name.isalpha() or (not chunks.header and name != b"IHDR"):
            raise Corrupt("the chunks of the PNG are damaged", _AGAIN)
        if at + 12 + length > len(data):
            raise Truncated("the PNG ends before its picture does", _MORE)
        _take(chunks, name, data[at : at + 12 + length])
        at += 12 + length
        if name == b"IEND":
            return chunks


def _take(chunks: Chunks, name: bytes, chunk: bytes) -> None:
    body = memoryview(chunk)[8:-4]
    if name[:1].isupper() or name == b"tRNS":
        if zlib.crc32(memoryview(chunk)[4:-4]) != int.from_bytes(chunk[-4:], "big"):
            raise Corrupt(f"the checksum of a {name.decode()} chunk is wrong", "Copy it again from its origin.")
        chunks.kept.append(chunk)
        if name == b"IHDR":
            chunks.header = bytes(body)
            if len(body) != 13:
                raise Corrupt("the header of the PNG makes no sense", _AGAIN)
        chunks.data_bytes += len(body) if name == b"IDAT" else 0
    elif name in _NOTED and len(body) <= _MOST_PROFILE_BYTES and _wanted(name, bytes(body[:16])):
        chunks.noted.setdefault(name, bytes(body))


def _wanted(name: bytes, lead: bytes) -> bool:
    return name not in (b"zTXt", b"tEXt") or lead == b"Raw profile type"


def _decode(clean: bytes, bits: int) -> tuple[Array, Array | None]:
    import cv2

    array = cv2.imdecode(np.frombuffer(clean, np.uint8), cv2.IMREAD_UNCHANGED)
    if array is None:
        raise Corrupt("the pixels of the PNG are damaged", "Copy it again from its origin.")
    if array.ndim == 3 and array.shape[2] == 4:
        alpha = np.ascontiguousarray(array[..., 3])
        return cv2.cvtColor(array, cv2.COLOR_BGRA2RGB), alpha
    return (cv2.cvtColor(array, cv2.COLOR_BGR2RGB) if array.ndim == 3 else array), None


def _profile(body: bytes) -> bytes | None:
    """An iCCP chunk: name, zero, method, zlib stream. Never inflates more than eight megabytes."""
    stream = body.partition(b"\0")[2][1:]
    try:
        return zlib.decompressobj().decompress(stream, _MOST_PROFILE_BYTES) or None
    except zlib.error:
        return None


def _gamma(noted: dict[bytes, bytes]) -> float | None:
    if b"sRGB" in noted or len(noted.get(b"gAMA", b"")) != 4:
        return None
    value = int.from_bytes(noted[b"gAMA"], "big") / 100_000
    return value if 0.1 <= value <= 5 else None


def _orientation(noted: dict[bytes, bytes]) -> int:
    """From eXIf, else from the hexadecimal text that ImageMagick writes ("Raw profile type exif")."""
    if b"eXIf" in noted:
        return orientation.from_exif(noted[b"eXIf"])
    for name in (b"zTXt", b"tEXt"):
        key, _, text = noted.get(name, b"").partition(b"\0")
        if key.split(b" ")[-1].lower() not in (b"exif", b"app1"):
            continue
        try:
            text = zlib.decompressobj().decompress(text[1:], _MOST_TEXT_BYTES) if name == b"zTXt" else text
        except zlib.error:
            continue
        digits = re.fullmatch(rb"\s*\w+\s+\d+\s+([0-9a-fA-F\s]*)", text[:_MOST_TEXT_BYTES])
        if digits:
            clean = re.sub(rb"\s", b"", digits[1])
            return orientation.from_exif(bytes.fromhex(clean[: len(clean) // 2 * 2].decode()))
    return 1
