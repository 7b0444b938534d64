"""Portable any-maps (PBM, PGM, PPM, PFM) and Radiance HDR."""

from __future__ import annotations

import re

import numpy as np

from watcher.errors import Corrupt, Truncated, Unsupported

from .picture import Array, Limits, Stored

_MORE = "Copy it again; the file is not all there."
_SPACE = rb"(?:\s|#[^\n]*\n)+"
_PNM = re.compile(rb"P([1-6])" + _SPACE + rb"(\d{1,9})" + _SPACE + rb"(\d{1,9})")
_MAXIMUM = re.compile(_SPACE + rb"(\d{1,5})\s")
_PFM = re.compile(rb"P([Ff])\s+(\d{1,9})\s+(\d{1,9})\s+([-+0-9.eE]{1,20})\s")
_HDR_SIZE = re.compile(rb"\n\n([-+])([XY]) (\d{1,9}) ([-+])([XY]) (\d{1,9})\n")


def pnm(data: bytes, limits: Limits) -> Stored:
    """Netpbm P1..P6, 1 to 16 bits; the first picture of a file. Samples are scaled from maxval to 255 or 65535."""
    head = _PNM.match(data)
    if head is None:
        raise _header("PNM", data)
    kind, width, height = int(head[1]), int(head[2]), int(head[3])
    limits.check(width, height, len(data))
    top, at = 1, head.end() + 1
    if kind not in (1, 4):
        maximum = _MAXIMUM.match(data, head.end())
        if maximum is None or not 0 < int(maximum[1]) < 65536:
            raise _header("PNM", data)
        top, at = int(maximum[1]), maximum.end()
    if not width or not height:
        raise Corrupt("the PNM has no width or no height", "Export it again.")
    colours = 3 if kind in (3, 6) else 1
    values = _bits(data[at:], width, height) if kind == 4 else _numbers(data[at:], width * height * colours, kind, top)
    if kind in (1, 4):
        values = 1 - values
    scaled = _scaled(np.minimum(values, top), top)
    shape = (height, width, 3) if colours == 3 else (height, width)
    return Stored(scaled.reshape(shape), width, height, bits=top.bit_length(), space="RGB" if colours == 3 else "GRAY")


def _header(name: str, data: bytes) -> Truncated | Corrupt:
    if len(data) < 64:
        return Truncated(f"the {name} ends within its header", _MORE)
    return Corrupt(f"the header of the {name} makes no sense", "Export it again.")


def _numbers(body: bytes, count: int, kind: int, top: int) -> Array:
    if kind >= 4:
        dtype = np.dtype(">u2" if top > 255 else np.uint8)
        if len(body) < count * dtype.itemsize:
            raise Truncated("the PNM ends before its picture does", _MORE)
        return np.frombuffer(body, dtype, count).astype(dtype.newbyteorder("="))
    text = re.sub(rb"#[^\n]*", b"", body)
    words = [text[at : at + 1] for at in range(len(text)) if text[at] in b"01"] if kind == 1 else text.split()
    if len(words) < count:
        raise Truncated("the PNM ends before its picture does", _MORE)
    return np.array(words[:count]).astype(np.uint16)


def _bits(body: bytes, width: int, height: int) -> Array:
    stride = (width + 7) // 8
    if len(body) < stride * height:
        raise Truncated("the PBM ends before its picture does", _MORE)
    rows = np.frombuffer(body, np.uint8, stride * height).reshape(height, stride)
    return np.unpackbits(rows, axis=1)[:, :width]


def _scaled(values: Array, top: int) -> Array:
    target: type[np.uint8] | type[np.uint16] = np.uint8 if top < 256 else np.uint16
    full = int(np.iinfo(target).max)
    if top == full:
        return values.astype(target)
    return ((values.astype(np.uint32) * full + top // 2) // top).astype(target)


def pfm(data: bytes, limits: Limits) -> Stored:
    """Portable float map: rows from the bottom up, a negative scale means little-endian; taken as linear light."""
    head = _PFM.match(data)
    if head is None:
        raise _header("PFM", data)
    width, height, scale = int(head[2]), int(head[3]), float(head[4])
    limits.check(width, height, len(data))
    colours = 3 if head[1] == b"F" else 1
    count = width * height * colours
    if not count:
        raise Corrupt("the PFM has no width or no height", "Export it again.")
    if len(data) - head.end() < 4 * count:
        raise Truncated("the PFM ends before its picture does", _MORE)
    values = np.frombuffer(data, "<f4" if scale < 0 else ">f4", count, head.end()).astype(np.float32)
    rows = values.reshape((height, width, 3) if colours == 3 else (height, width))[::-1]
    return Stored(rows, width, height, bits=32, space="RGB" if colours == 3 else "GRAY", scene=True)


def hdr(data: bytes, limits: Limits) -> Stored:
    """Radiance RGBE, flat or run-length coded, rows from the top; linear light."""
    head = _HDR_SIZE.search(data, 0, 1 << 16)
    if head is None:
        raise _header("HDR", data)
    if (head[1], head[2], head[4], head[5]) != (b"-", b"Y", b"+", b"X"):
        raise Unsupported("the HDR file is stored turned", "Export it again, upright.")
    height, width = int(head[3]), int(head[6])
    limits.check(width, height, len(data))
    if not width or not height:
        raise Corrupt("the HDR has no width or no height", "Export it again.")
    rgbe = _rgbe(memoryview(data)[head.end() :], width, height)
    scale = np.ldexp(np.float32(1), rgbe[..., 3].astype(np.int32) - 136)
    linear = np.where(rgbe[..., 3:] > 0, (rgbe[..., :3].astype(np.float32) + 0.5) * scale[..., None], 0)
    return Stored(linear.astype(np.float32), width, height, bits=32, scene=True)


def _rgbe(body: memoryview, width: int, height: int) -> Array:
    """(height, width, 4) uint8 (Ward, Graphics Gems II, "Real Array"; the run-length form of Radiance 2)."""
    if not 8 <= width <= 32767 or bytes(body[:2]) != b"\x02\x02":
        if len(body) < 4 * width * height:
            raise Truncated("the HDR ends before its picture does", _MORE)
        return np.frombuffer(body, np.uint8, 4 * width * height).reshape(height, width, 4)
    out, at = np.empty((height, 4, width), np.uint8), 0
    for row in range(height):
        if bytes(body[at : at + 2]) != b"\x02\x02":
            raise (Truncated if at + 4 > len(body) else Corrupt)("the rows of the HDR are damaged", _MORE)
        at += 4
        for plane in range(4):
            at = _run(body, at, out[row, plane])
    return out.transpose(0, 2, 1)


def _run(body: memoryview, at: int, line: Array) -> int:
    here = 0
    while here < len(line):
        if at + 1 >= len(body):
            raise Truncated("the HDR ends before its picture does", _MORE)
        count = body[at]
        length = count - 128 if count > 128 else count
        if not length or here + length > len(line):
            raise Corrupt("a run of the HDR is too long", "Export it again.")
        if count > 128:
            line[here : here + length] = body[at + 1]
            at += 2
        else:
            if at + 1 + length > len(body):
                raise Truncated("the HDR ends before its picture does", _MORE)
            line[here : here + length] = np.frombuffer(body, np.uint8, length, at + 1)
            at += 1 + length
        here += length
    return at
