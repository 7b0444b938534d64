"""Deflate for maps: isal when it is installed (level 1, about six times faster), else zlib at its fastest."""

from __future__ import annotations

import functools
import zlib as _zlib
from types import ModuleType


@functools.cache
def _fastest() -> ModuleType:
    try:
        from isal import isal_zlib
    except ImportError:
        return _zlib
    return isal_zlib


def compress(data: bytes | memoryview) -> bytes:
    """A zlib stream (RFC 1950) of ``data``."""
    return bytes(_fastest().compress(data, 1))


def checksum(data: bytes, before: int = 0) -> int:
    """CRC-32 (ISO 3309, as PNG uses it), going on from ``before``."""
    return int(_fastest().crc32(data, before))
