"""Readers that the program itself does not use for what it writes, so that a round trip proves something."""

from __future__ import annotations

import ast
import io
import json
from typing import Any

import cv2
import numpy as np
import OpenEXR  # type: ignore[import-not-found]
from numpy.typing import NDArray
from PIL import Image

READERS = {
    "png16": "Pillow",
    "png8": "Pillow",
    "jpg": "OpenCV",
    "tiff16": "Pillow",
    "tiff32f": "Pillow",
    "exr": "OpenEXR library",
    "exr half": "OpenEXR library",
    "pfm": "OpenCV",
    "npy": "hand",
}
_MARK = b"depth-watcher:"


def values(data: bytes, fmt: str) -> NDArray[Any]:
    """(H, W) as stored, by the reader of ``READERS``."""
    if fmt.startswith("exr"):
        with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
            return np.array(next(iter(file.channels().values())).pixels)
    if READERS[fmt] == "Pillow":
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image)
    if fmt == "npy":  # version 1.0: magic, two bytes of length, a dictionary, the values
        length = int.from_bytes(data[8:10], "little")
        head = ast.literal_eval(data[10 : 10 + length].decode("latin-1").strip())
        return np.frombuffer(data[10 + length :], head["descr"]).reshape(head["shape"])
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


def channel(data: bytes) -> str:
    """The name of an EXR's one channel."""
    with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
        return ", ".join(file.channels())


def facts(data: bytes, fmt: str) -> dict[str, str]:
    """What the file says about its making; empty for formats that have no place for it."""
    if fmt.startswith("png"):
        with Image.open(io.BytesIO(data)) as image:
            found = dict(image.info)
    elif fmt.startswith("tiff"):
        with Image.open(io.BytesIO(data)) as image:
            text = str(image.tag_v2[270])  # type: ignore[attr-defined]
        return dict(json.loads(text.removeprefix(_MARK.decode())))
    elif fmt == "jpg":
        at = data.index(_MARK)
        length = int.from_bytes(data[at - 2 : at], "big") - 2
        return dict(json.loads(data[at + len(_MARK) : at + length]))
    elif fmt.startswith("exr"):
        with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
            found = dict(file.header())
    else:
        return {}
    return {str(key)[6:]: str(value) for key, value in found.items() if str(key).startswith("depth:")}
