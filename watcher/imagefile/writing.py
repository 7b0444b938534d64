"""Maps to bytes, with the facts about their making inside; and those facts read back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from watcher.errors import FrameError, UsageError

from . import exrmap, pngmap
from .picture import Array
from .sniff import HEAD_BYTES, sniff

_JPEG_QUALITY = 95
_MARK = "depth-watcher:"
_READ_BYTES = 1 << 20
_TIFF_COMPRESSION = 8  # Adobe deflate
_TIFF_STRIP_BYTES = 1 << 20


def encode(array: Array, fmt: str, facts: Mapping[str, str], channel: str = "Z") -> bytes:
    """A depth map (H, W) as the bytes of a file, with ``facts`` inside as text.

    | fmt     | array            | facts are in                     |
    | png16   | uint16           | iTXt chunks ``depth:<key>``      |
    | png8    | uint8            | iTXt chunks ``depth:<key>``      |
    | jpg     | uint8            | a comment, JSON                  |
    | tiff16  | uint16           | ImageDescription, JSON           |
    | tiff32f | float32          | ImageDescription, JSON           |
    | exr     | float32, float16 | attributes ``depth:<key>``       |
    | pfm     | float32          | (the format has no place)        |
    | npy     | any of the three | (the format has no place)        |

    ``channel``: the name of the one channel of an EXR, ``Z`` or ``Y``; the other formats have no names.

    Raises UsageError for another format, ValueError when the array is not of the format's kind (a mistake of the
    caller: nothing is converted here, so nothing is lost unseen).
    """
    if fmt not in _WRITERS:
        raise UsageError(f"there is no output format {fmt!r}", f"Use one of: {', '.join(_WRITERS)}.")
    kinds, _, write = _WRITERS[fmt]
    if array.ndim != 2 or array.dtype.name not in kinds or not array.size:
        raise ValueError(f"{fmt} takes (H, W) {' or '.join(kinds)}, not {array.shape} {array.dtype}")
    return exrmap.encode(array, facts, channel) if fmt == "exr" else write(array, facts)


def extension(fmt: str) -> str:
    """The file extension of an output format, with its dot. Raises UsageError for an unknown one."""
    if fmt not in _WRITERS:
        raise UsageError(f"there is no output format {fmt!r}", f"Use one of: {', '.join(_WRITERS)}.")
    return _WRITERS[fmt][1]


def read_facts(path: Path) -> dict[str, str] | None:
    """The facts inside a map that ``encode`` wrote; None for every other file. OSError passes through."""
    with path.open("rb") as file:
        name = sniff(file.read(HEAD_BYTES))
        try:
            if name == "png":
                return pngmap.facts(file)
            file.seek(0)
            if name == "exr":
                return exrmap.facts(file.read(_READ_BYTES))
            if name == "jpeg":
                return _jpeg_facts(file.read(_READ_BYTES))
            return _tiff_facts(path) if name == "tiff" else None
        except (FrameError, ValueError, KeyError, IndexError):
            return None


def _described(facts: Mapping[str, str]) -> str:
    return _MARK + json.dumps(dict(facts), ensure_ascii=True, separators=(",", ":"))


def _understood(text: str) -> dict[str, str] | None:
    if not text.startswith(_MARK):
        return None
    found = json.loads(text[len(_MARK) :])
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else None


def _jpg(array: Array, facts: Mapping[str, str]) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(array).save(out, "JPEG", quality=_JPEG_QUALITY, comment=_described(facts).encode()[:65_000])
    return out.getvalue()


def _jpeg_facts(data: bytes) -> dict[str, str] | None:
    at = data.find(b"\xff\xfe")
    if at < 0:
        return None
    length = int.from_bytes(data[at + 2 : at + 4], "big")
    return _understood(data[at + 4 : at + 2 + length].decode("utf-8", "replace"))


def _tiff(array: Array, facts: Mapping[str, str]) -> bytes:
    import tifffile

    from .deflate import compress

    height, width = array.shape
    rows = max(1, min(height, _TIFF_STRIP_BYTES // (width * array.dtype.itemsize)))
    plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    strips = (compress(plain[top : top + rows].tobytes()) for top in range(0, height, rows))
    out = io.BytesIO()
    tifffile.imwrite(
        out,
        strips,
        shape=array.shape,
        dtype=array.dtype,
        byteorder="<",
        photometric="minisblack",
        compression=_TIFF_COMPRESSION,
        rowsperstrip=rows,
        description=_described(facts),
        software="depth-watcher",
        metadata=None,
    )
    return out.getvalue()


def _tiff_facts(path: Path) -> dict[str, str] | None:
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            return _understood(str(file.pages.first.description))
    except OSError:
        raise
    except Exception:  # a damaged directory fails in many ways, and none of them is a map of ours
        return None


def _pfm(array: Array, _facts: Mapping[str, str]) -> bytes:
    height, width = array.shape
    return f"Pf\n{width} {height}\n-1.0\n".encode() + array[::-1].astype("<f4").tobytes()


def _npy(array: Array, _facts: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


_Writer = Callable[[Array, Mapping[str, str]], bytes]
_WRITERS: dict[str, tuple[tuple[str, ...], str, _Writer]] = {
    "png16": (("uint16",), ".png", pngmap.encode),
    "png8": (("uint8",), ".png", pngmap.encode),
    "jpg": (("uint8",), ".jpg", _jpg),
    "tiff16": (("uint16",), ".tif", _tiff),
    "tiff32f": (("float32",), ".tif", _tiff),
    "exr": (("float32", "float16"), ".exr", exrmap.encode),
    "pfm": (("float32",), ".pfm", _pfm),
    "npy": (("uint8", "uint16", "float32"), ".npy", _npy),
}
FORMATS: tuple[str, ...] = tuple(_WRITERS)
"""All output formats."""
