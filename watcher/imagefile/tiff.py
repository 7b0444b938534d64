"""TIFF, BigTIFF and the previews of DNG: any bit depth, layout and compression, first picture."""

from __future__ import annotations

import io
import logging
from typing import Any

import numpy as np

from watcher.errors import Corrupt, FrameError, Truncated, Unsupported

from .picture import Array, Limits, Stored

_MORE = "Copy it again; the file is not all there."
_AGAIN = "Export it again, as an 8- or 16-bit RGB TIFF or PNG."
_MOST_SAMPLES = 16
_SPACES = {0: "GRAY", 1: "GRAY", 2: "RGB", 3: "PALETTE", 5: "CMYK", 6: "RGB", 8: "LAB"}
_REDUCED = 1
_DNG_VERSION = 50706
_DECODED_TO_RGB = frozenset((6, 7, 33007, 34892, 50001, 50002))  # JPEG and its successors turn YCbCr themselves


def read(data: bytes, limits: Limits) -> Stored:
    """TIFF 6.0 and its supplements. Raises Truncated when a strip or tile lies outside the file."""
    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what it would log is raised here
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page, notes = _page(file)
        limits.check(page.imagewidth, page.imagelength, len(data))
        _check(page, len(data))
        return _stored(page, notes)


def _page(file: Any) -> tuple[Any, tuple[str, ...]]:
    """The page to show: the first, or for a raw file the largest preview that is no sensor data."""
    first = file.pages.first
    if not (_DNG_VERSION in first.tags or int(first.subfiletype) & _REDUCED) or not first.subifds:
        several = len(file.pages) if len(file.pages) > 1 else 0
        return first, (f"first of {several} pages",) if several else ()
    shown = [page for page in (first, *(first.pages or ())) if _SPACES.get(int(page.photometric)) in ("RGB", "GRAY")]
    if not shown:
        raise Unsupported("the raw file holds no preview", "Develop it and export a TIFF or JPEG.")
    best = max(shown, key=lambda page: page.imagewidth * page.imagelength)
    return best, () if best is first else ("preview of a raw file",)


def _check(page: Any, size: int) -> None:
    if not page.imagewidth or not page.imagelength:
        raise Corrupt("the TIFF has no width or no height", _AGAIN)
    if page.samplesperpixel > _MOST_SAMPLES or getattr(page, "imagedepth", 1) > 1:
        raise Unsupported(f"a TIFF with {page.samplesperpixel} channels cannot be read", _AGAIN)
    if int(page.photometric) not in _SPACES:
        raise Unsupported(f"TIFF colour of kind {page.photometric} cannot be read", _AGAIN)
    if not page.dataoffsets:
        raise Corrupt("the TIFF holds no pixels", _AGAIN)
    if any(at + count > size for at, count in zip(page.dataoffsets, page.databytecounts, strict=False)):
        raise Truncated("the TIFF ends before its picture does", _MORE)
    if any(at == 0 or count == 0 for at, count in zip(page.dataoffsets, page.databytecounts, strict=False)):
        raise Corrupt("parts of the TIFF's picture are missing", _AGAIN)
    if page.dtype is None:
        raise Unsupported(f"TIFF samples of {page.bitspersample} bits cannot be read", _AGAIN)


def _stored(page: Any, notes: tuple[str, ...]) -> Stored:
    array = _pixels(page)
    space = _SPACES[int(page.photometric)]
    if space == "PALETTE":
        array, space = _looked_up(array, page), "RGB"
    array, bits = _scaled(array, page, space)
    if int(page.photometric) == 6 and int(page.compression) not in _DECODED_TO_RGB and array.ndim == 3:
        array = _from_ycbcr(array)
    array, alpha = _without_alpha(array, page, {"RGB": 3, "LAB": 3, "CMYK": 4}.get(space, 1))
    if int(page.photometric) == 0:
        array = (1 - array) if array.dtype == np.float32 else ~array
    tag = page.tags.get(274)
    turned = int(tag.value) if tag is not None and isinstance(tag.value, int) else 1
    profile = page.tags.get(34675)
    return Stored(
        np.ascontiguousarray(array),
        page.imagewidth,
        page.imagelength,
        alpha=alpha,
        bits=bits,
        orientation=turned if 1 <= turned <= 8 else 1,
        space=space,
        icc=bytes(profile.value) if profile is not None and space != "LAB" else None,
        notes=notes,
    )


def _pixels(page: Any) -> Array:
    """(h, w) or (h, w, samples), as stored; planar layouts are brought to the last axis."""
    try:
        array = page.asarray(maxworkers=1)
    except FrameError:
        raise
    except Exception as error:
        if "requires the 'imagecodecs'" in str(error) or isinstance(error, NotImplementedError):
            raise Unsupported(f"the compression of the TIFF cannot be read ({error})", _AGAIN) from error
        raise Corrupt(f"the pixels of the TIFF are damaged ({error})", _AGAIN) from error
    if page.samplesperpixel > 1 and array.shape[0] == page.samplesperpixel and int(page.planarconfig) == 2:
        array = np.moveaxis(array.reshape(page.samplesperpixel, page.imagelength, page.imagewidth), 0, -1)
    wanted = (page.imagelength, page.imagewidth) + ((page.samplesperpixel,) if page.samplesperpixel > 1 else ())
    return np.asarray(array).reshape(wanted)


def _from_ycbcr(array: Array) -> Array:
    """(h, w, 3) uint8 YCbCr, full range, to RGB (ITU-R BT.601, as in TIFF 6.0 section 21)."""
    y, cb, cr = (array[..., at].astype(np.float32) - (128 if at else 0) for at in range(3))
    rgb = np.stack((y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb), axis=-1)
    return np.asarray(np.clip(rgb + 0.5, 0, 255)).astype(np.uint8)


def _looked_up(array: Array, page: Any) -> Array:
    """Palette indices through the colour map, (3, 2**bits) uint16, to 8-bit RGB."""
    if page.colormap is None:
        raise Corrupt("the TIFF has no palette", _AGAIN)
    if array.ndim == 3:
        array = array[..., 0]
    table = np.moveaxis(np.asarray(page.colormap), 0, -1)
    table = (table >> 8) if table.max() > 255 else table
    return table.astype(np.uint8)[np.minimum(array, len(table) - 1)]


def _scaled(array: Array, page: Any, space: str) -> tuple[Array, int]:
    """Samples of any kind as uint8, uint16 or float32, and their stored bits."""
    given = page.bitspersample
    bits = 8 if space == "RGB" and int(page.photometric) == 3 else int(given if isinstance(given, int) else max(given))
    if array.dtype == bool:
        return array.astype(np.uint8) * 255, 1
    if array.dtype.kind == "f":
        return array.astype(np.float32), array.dtype.itemsize * 8
    if array.dtype.kind == "c":
        raise Unsupported("complex numbers are no picture", _AGAIN)
    if array.dtype.kind == "i" and space != "LAB":
        array = _unsigned(array)
    if array.dtype.itemsize > 2:
        small = int(array.max()) < 65536  # 16-bit values that a program kept in 32 bits
        return (array if small else array >> (array.dtype.itemsize * 8 - 16)).astype(np.uint16), bits
    if bits not in (8, 16) and bits < 16:
        target: type[Any] = np.uint8 if bits < 8 else np.uint16
        full, wide = np.iinfo(target).max, (1 << bits) - 1
        return ((array.astype(np.uint32) * full + wide // 2) // wide).astype(target), bits
    return array, bits


def _unsigned(array: Array) -> Array:
    """Signed integers: their lowest value becomes black when any is negative, else they keep their values."""
    lowest = np.iinfo(array.dtype).min if array.min() < 0 else 0
    return (array.astype(np.int64) - lowest).astype(array.dtype.str.replace("i", "u"))


def _without_alpha(array: Array, page: Any, colours: int) -> tuple[Array, Array | None]:
    """(colour samples, alpha or None). Associated alpha is left multiplied: pixels are as stored."""
    if array.ndim == 2:
        return array, None
    if array.shape[2] < colours:
        return array[..., 0], None
    extra = [int(kind) for kind in (page.extrasamples or ())]
    alpha = None
    if extra and extra[0] in (1, 2) and array.shape[2] > colours:
        alpha = np.ascontiguousarray(array[..., colours])
        if alpha.dtype == np.float32:
            alpha = (np.clip(np.nan_to_num(alpha), 0, 1) * 65535 + 0.5).astype(np.uint16)
    return (array[..., :colours] if colours > 1 else array[..., 0]), alpha
