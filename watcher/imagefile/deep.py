"""More than eight bits where the usual reader gives eight: AVIF, JPEG 2000 in colour, the composite of a PSD."""

from __future__ import annotations

from typing import Any

import numpy as np

from watcher.errors import Corrupt, Truncated, Unsupported

from . import orientation
from .picture import Array, Limits, Stored

_MORE = "Copy it again; the file is not all there."
_SIZ = b"\xff\x4f\xff\x51"
_PSD_COLOURS = {1: ("GRAY", 1), 3: ("RGB", 3)}


def avif_bits(data: bytes) -> int:
    """Bits of the first ``av1C`` box: 8, 10 or 12 (AV1 codec ISO media file format binding, 2.3.3)."""
    at = data.find(b"av1C", 0, 1 << 16)
    if at < 0 or at + 7 > len(data):
        return 8
    high, twelve = data[at + 6] & 0x40, data[at + 6] & 0x20
    return 12 if high and twelve else 10 if high else 8


def avif(data: bytes, limits: Limits, coded: tuple[int, int] | None) -> Stored:
    """AVIF of 10 or 12 bits. Its size and its turning come from the header, before anything is allocated."""
    import imagecodecs

    from .library import open_image

    with open_image(data, "AVIF") as image:
        width, height = image.size
        limits.check(width, height, len(data))
        turned = orientation.from_exif(image.info.get("exif", b""))
        icc = image.info.get("icc_profile") or None
    bits = avif_bits(data)
    samples, alpha = _parted(_full(imagecodecs.avif_decode(data), bits))
    return _stored(samples, alpha, (width, height), bits=bits, orientation=turned, icc=icc, coded=coded)


def jp2_bits(data: bytes) -> int:
    """Bits of every component of a JPEG 2000 whose three or four components are alike and whole, else 0.

    ISO/IEC 15444-1, A.5.1: the SIZ marker. A JP2 that says sYCC (enumerated colour space 18) is left alone.
    """
    at = data.find(_SIZ, 0, 1 << 20)
    if at < 0 or at + 42 > len(data) or b"colr\x01\x00\x00\x00\x00\x00\x12" in data[:at]:
        return 0
    count = int.from_bytes(data[at + 40 : at + 42], "big")
    parts = {data[at + 42 + 3 * n : at + 45 + 3 * n] for n in range(count)}
    if count not in (3, 4) or len(parts) != 1:
        return 0
    depth, *sampling = parts.pop()
    return depth + 1 if depth < 16 and sampling == [1, 1] else 0


def jp2(data: bytes, limits: Limits) -> Stored:
    """JPEG 2000, colour of 9 to 16 bits."""
    import imagecodecs

    from .library import open_image

    with open_image(data, "JPEG2000") as image:
        width, height = image.size
        limits.check(width, height, len(data))
        icc = image.info.get("icc_profile") or None
    bits = jp2_bits(data)
    samples, alpha = _parted(_full(imagecodecs.jpeg2k_decode(data), bits))
    return _stored(samples, alpha, (width, height), bits=bits, icc=icc)


def psd(data: bytes, limits: Limits) -> Stored:
    """The composite of a PSD or PSB of 16 bits, gray or RGB, raw or packed (Adobe Photoshop File Formats)."""
    import imagecodecs

    large = data[4:6] == b"\0\2"
    channels, height, width = (int.from_bytes(data[a:b], "big") for a, b in ((12, 14), (14, 18), (18, 22)))
    space, colours = _PSD_COLOURS.get(int.from_bytes(data[24:26], "big"), ("", 0))
    if not colours or channels < colours:
        raise Unsupported("a 16-bit PSD can be read in gray and RGB only", "Convert it to RGB in Photoshop.")
    limits.check(width, height, len(data))
    at = 26
    for size in (4, 4, 8 if large else 4):  # palette, resources, layers: each behind its length
        at += size + int.from_bytes(data[at : at + size], "big")
    kind, at = int.from_bytes(data[at : at + 2], "big"), at + 2
    rows, plane = channels * height, height * width * 2
    if kind == 1:
        counted = rows * (4 if large else 2)
        at, packed = at + counted, np.frombuffer(data[at : at + counted], ">u4" if large else ">u2")
        if len(packed) < rows or at + int(packed.sum()) > len(data):
            raise Truncated("the PSD ends before its picture does", _MORE)
        ends = at + np.cumsum(packed[: colours * height], dtype=np.int64)
        starts = ends - packed[: colours * height]
        parts = [imagecodecs.packbits_decode(data[a:b]) for a, b in zip(starts, ends, strict=True)]
        body = b"".join(bytes(part) for part in parts)
    elif kind == 0:
        body = data[at : at + colours * plane]
    else:
        raise Unsupported("the composite of this PSD is packed in a way that is not read", "Save it as TIFF.")
    if len(body) != colours * plane:
        raise (Truncated if kind == 0 else Corrupt)("the PSD ends before its picture does", _MORE)
    planes = np.frombuffer(body, ">u2").reshape(colours, height, width).astype(np.uint16)
    samples = planes[0] if colours == 1 else np.ascontiguousarray(planes.transpose(1, 2, 0))
    return Stored(samples, width, height, bits=16, space=space)


def psd_bits(data: bytes) -> int:
    return int.from_bytes(data[22:24], "big")


def _full(values: Any, bits: int) -> Array:
    """Samples of ``bits`` (9..16) as uint16 0..65535."""
    whole = np.asarray(values).astype(np.uint32) * np.uint32(65535) + np.uint32((1 << bits) - 1 >> 1)
    return np.asarray(whole // np.uint32((1 << bits) - 1), np.uint16)


def _parted(array: Array) -> tuple[Array, Array | None]:
    if array.ndim == 2:
        return array, None
    colours = 3 if array.shape[2] >= 3 else 1
    alpha = np.ascontiguousarray(array[..., colours]) if array.shape[2] > colours else None
    return np.ascontiguousarray(array[..., :3] if colours == 3 else array[..., 0]), alpha


def _stored(samples: Array, alpha: Array | None, size: tuple[int, int], **more: Any) -> Stored:
    space = "GRAY" if samples.ndim == 2 else "RGB"
    return Stored(samples, *size, alpha=alpha, space=space, **more)
