"""Maps read back as they were written: the values themselves, nothing converted. For `inspect` and for tests."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from watcher.errors import Corrupt, NotAPicture

from .picture import Array
from .sniff import HEAD_BYTES, sniff

_NPY = b"\x93NUMPY"


def read_map(path: Path) -> Array:
    """A depth map (H, W) in its own dtype: uint8, uint16, float16 or float32.

    Raises NotAPicture where the file is none of the formats that maps are written in, Corrupt where it is damaged or
    has more than one channel. OSError passes through.
    """
    data = path.read_bytes()
    head = data[:HEAD_BYTES]
    name = "npy" if head.startswith(_NPY) else sniff(head)
    if name not in _READERS:
        raise NotAPicture(f"{path} is no depth map", "Name a PNG, JPEG, TIFF, EXR, PFM or NPY map.")
    try:
        values = _READERS[name](data)
    except Exception as error:  # whatever a reader throws, it is the file's fault
        raise Corrupt(f"{path} cannot be read ({error})", "Make the map again.") from error
    if values.ndim != 2 or values.dtype.name not in ("uint8", "uint16", "float16", "float32") or not values.size:
        raise Corrupt(f"{path} is a picture, not a depth map", "A depth map has one channel.")
    return values


def _opencv(data: bytes) -> Array:
    import cv2

    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


def _tiff(data: bytes) -> Array:
    import tifffile

    return np.asarray(tifffile.imread(io.BytesIO(data)))


def _exr(data: bytes) -> Array:
    import OpenEXR  # type: ignore[import-not-found]

    with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
        channels = file.parts[0].channels
        if len(channels) != 1:
            raise ValueError(f"it has {len(channels)} channels")
        return np.array(next(iter(channels.values())).pixels)


def _pfm(data: bytes) -> Array:
    kind, sides, scale, body = data.split(b"\n", 3)
    if kind.strip() != b"Pf":
        raise ValueError("it is in colour")
    width, height = (int(side) for side in sides.split())
    dtype = np.dtype("<f4" if float(scale) < 0 else ">f4")
    return np.frombuffer(body, dtype, width * height).reshape(height, width)[::-1].astype(np.float32)


def _npy(data: bytes) -> Array:
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


_READERS: dict[str | None, Callable[[bytes], Array]] = {
    "png": _opencv,
    "jpeg": _opencv,
    "tiff": _tiff,
    "exr": _exr,
    "pfm": _pfm,
    "npy": _npy,
}
