"""Pictures made for the tests of imagefile, of every format that can be written here."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pillow_heif
import tifffile
from numpy.typing import NDArray
from PIL import Image

from watcher import imagefile

WIDTH, HEIGHT = 96, 64
Array = NDArray[Any]


def scene() -> Array:
    """(64, 96, 3) uint8, different in every corner and without a flat row: red, green, blue and white corners."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    u, v = x / (WIDTH - 1), y / (HEIGHT - 1)
    red = (1 - u) * (1 - v) + u * v
    green = u * (1 - v) + u * v
    blue = (1 - u) * v + u * v
    wave = 0.04 * np.sin(x) * np.cos(y * 1.7)
    bright = np.stack((red, green, blue), axis=-1) * 0.9 + 0.05 + wave[..., None]
    return np.asarray(np.clip(bright, 0, 1) * 255).astype(np.uint8)


def exif(orientation: int, order: str = "<") -> bytes:
    """A block of EXIF with one entry."""
    lead = b"II*\0" if order == "<" else b"MM\0*"
    entry = struct.pack(order + "HHIHH", 274, 3, 1, orientation, 0)
    return b"Exif\0\0" + lead + struct.pack(order + "IH", 8, 1) + entry + struct.pack(order + "I", 0)


def saved(picture: Array, name: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, name, **options)
    return out.getvalue()


def tiff(picture: Array, **options: Any) -> bytes:
    out = io.BytesIO()
    tifffile.imwrite(out, picture, metadata=None, **options)
    return out.getvalue()


def heic(picture: Array, **options: Any) -> bytes:
    out = io.BytesIO()
    pillow_heif.from_bytes("RGB", (picture.shape[1], picture.shape[0]), picture.tobytes()).save(out, **options)
    return out.getvalue()


def pfm(picture: Array) -> bytes:
    rows = picture[::-1].astype("<f4") / 255
    return f"PF\n{picture.shape[1]} {picture.shape[0]}\n-1.0\n".encode() + rows.tobytes()


def exr(picture: Array) -> bytes:
    return imagefile.encode(picture[..., 1].astype(np.float32) / 255, "exr", {})


def hdr(picture: Array) -> bytes:
    rgbe = np.dstack((picture, np.full(picture.shape[:2], 128, np.uint8)))
    head = f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {picture.shape[0]} +X {picture.shape[1]}\n".encode()
    rows = [
        b"\2\2"
        + struct.pack(">H", len(row))
        + b"".join(bytes((96,)) + np.ascontiguousarray(row[:, at]).tobytes() for at in range(4))
        for row in rgbe
    ]
    return head + b"".join(rows)


MADE: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: saved(scene(), "JPEG", quality=95),
    "jpeg progressive": lambda: saved(scene(), "JPEG", quality=95, progressive=True),
    "jpeg gray": lambda: saved(scene()[..., 1], "JPEG", quality=95),
    "png": lambda: saved(scene(), "PNG"),
    "png 16": lambda: imagefile.encode(scene()[..., 1].astype(np.uint16) * 257, "png16", {}),
    "tiff": lambda: tiff(scene(), photometric="rgb"),
    "tiff deflate": lambda: tiff(scene(), photometric="rgb", compression="zlib", rowsperstrip=8),
    "tiff tiled 16": lambda: tiff(scene().astype(np.uint16) * 257, photometric="rgb", tile=(16, 16), compression=8),
    "webp": lambda: saved(scene(), "WEBP", quality=95),
    "webp lossless": lambda: saved(scene(), "WEBP", lossless=True),
    "bmp": lambda: saved(scene(), "BMP"),
    "gif": lambda: saved(scene()[..., 1], "GIF"),
    "heic": lambda: heic(scene(), quality=95),
    "avif": lambda: saved(scene(), "AVIF", quality=95),
    "jp2": lambda: saved(scene(), "JPEG2000"),
    "ppm": lambda: saved(scene(), "PPM"),
    "pgm": lambda: saved(scene()[..., 1], "PPM"),
    "pfm": lambda: pfm(scene()),
    "hdr": lambda: hdr(scene()),
    "exr": lambda: exr(scene()),
}
"""One maker a kind; the gray ones show the green channel of ``scene``."""
