"""The scans of a JPEG: are all of them there, and all the pieces of each? Counts markers, decodes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from watcher.errors import Corrupt, Truncated

_PROGRESSIVE = frozenset((0xC2, 0xCA))
_COEFFICIENTS = 64
_MOST_SCANS = 500
_MOST_MARKERS = 4_000_000
_AT_ONCE_BYTES = 1 << 20
_MORE = "Copy it again; the file is not all there."


@dataclass(frozen=True, slots=True)
class Shape:
    """What the frame header says (ITU-T T.81 B.2.2): for each component its name, and how finely it is sampled."""

    sof: int = 0
    width: int = 0
    height: int = 0
    sampling: dict[int, tuple[int, int]] = field(default_factory=dict)  # component → (horizontal, vertical)
    told_apart: bool = True  # no two components have one name


@dataclass(slots=True)
class _Scan:
    """``reach``: which coefficients it brings (first, last), and down to which bit."""

    components: tuple[int, ...]
    reach: tuple[int, int]
    low_bit: int
    interval: int  # units between two restart markers; 0: there are none
    restarts: int = 0


def shape_of(sof: int, body: bytes) -> Shape:
    """From the body of a frame header, at least six bytes."""
    places = range(6, min(6 + 3 * body[5], len(body) - 2), 3)
    parts = {body[at]: (max(1, body[at + 1] >> 4), max(1, body[at + 1] & 15)) for at in places}
    return Shape(sof, int.from_bytes(body[3:5], "big"), int.from_bytes(body[1:3], "big"), parts, len(parts) == body[5])


def check(data: bytes, shape: Shape, interval: int) -> int:
    """How many scans there are, ``data`` being all from the first one on; ``interval`` as the header left it.

    Raises ``Truncated`` where a component, or the finer bits of a progressive picture, have no scan (T.81 G.1.1.1), and
    ``Corrupt`` where a scan has fewer restart markers than its size asks for (E.1.4; decoders paint that gray), or if
    there are so many scans or markers that they can only be meant to keep a decoder busy.
    """
    found = list(islice(_scans(data, interval), _MOST_SCANS + 1))
    if len(found) > _MOST_SCANS:
        raise Corrupt(f"the JPEG has more than {_MOST_SCANS} scans", "Export it again.")
    for scan in found:
        wanted = _restarts(shape, scan) if shape.told_apart else 0
        if scan.restarts < wanted:
            missing = f"{wanted - scan.restarts} of {wanted + 1} pieces"
            raise Corrupt(f"a part of the JPEG is missing: {missing}", "Copy or export it again.")
    if not _complete(shape, found):
        raise Truncated("the JPEG has an end mark but not all of its scans", _MORE)
    return len(found)


def _complete(shape: Shape, scans: list[_Scan]) -> bool:
    """Whether every coefficient of every component is brought down to its last bit."""
    progressive = shape.sof in _PROGRESSIVE
    missing = {(name, at) for name in shape.sampling for at in range(_COEFFICIENTS if progressive else 1)}
    for scan in scans:
        if progressive and scan.low_bit:
            continue
        first, last = scan.reach if progressive else (0, 0)
        missing -= {(name, at) for name in scan.components for at in range(first, last + 1)}
    return not missing


def _scans(data: bytes, interval: int) -> Iterator[_Scan]:
    scan: _Scan | None = None
    at = 0
    for place in _markers(data):
        if place <= at:  # inside a segment's body
            continue
        code, at = data[place], place + 1
        if 0xD0 <= code <= 0xD7:
            if scan is not None:
                scan.restarts += 1
            continue
        if code == 0xD9:
            break
        if code in (0x01, 0xD8):
            continue
        body = data[at + 2 : at + int.from_bytes(data[at : at + 2], "big")]
        if code == 0xDD and len(body) >= 2:
            interval = int.from_bytes(body[:2], "big")
        if code == 0xDA:
            if scan is not None:
                yield scan
            scan = _begun(body, interval)
        at += 2 + len(body)
    if scan is not None:
        yield scan


def _markers(data: bytes) -> Iterator[int]:
    """Where the codes of markers are: behind 0xFF, and neither a stuffed zero nor a fill byte (T.81 B.1.1)."""
    values = np.frombuffer(data, np.uint8)
    count = 0
    for start in range(0, len(values), _AT_ONCE_BYTES):  # a file of nothing but 0xFF must not cost eight times itself
        part = values[start : start + _AT_ONCE_BYTES + 1]
        before = np.flatnonzero(part[:-1] == 0xFF)
        codes = part[before + 1]
        found = before[(codes != 0) & (codes != 0xFF)]
        count += len(found)
        if count > _MOST_MARKERS:
            raise Corrupt("the JPEG has millions of markers", "Export it again.")
        yield from (found + (start + 1)).tolist()


def _begun(body: bytes, interval: int) -> _Scan:
    count = body[0] if body else 0
    names = tuple(body[1 : 1 + 2 * count : 2])
    first, last, bits = (*body[1 + 2 * count : 4 + 2 * count], 0, 0, 0)[:3]
    return _Scan(names, (first, last), bits & 15, interval)


def _restarts(shape: Shape, scan: _Scan) -> int:
    """How many restart markers a scan must have (T.81 A.2, E.1.4)."""
    sampled = [shape.sampling[name] for name in scan.components if name in shape.sampling]
    if not scan.interval or not sampled:
        return 0
    most = max(h for h, _ in shape.sampling.values()), max(v for _, v in shape.sampling.values())
    if len(sampled) == 1:  # a component alone: its units are single blocks, without padding
        ((h, v),) = sampled
        wide, high = -(-shape.width * h // most[0]), -(-shape.height * v // most[1])
        units = -(-wide // 8) * -(-high // 8)
    else:
        units = -(-shape.width // (8 * most[0])) * -(-shape.height // (8 * most[1]))
    return (units - 1) // scan.interval
