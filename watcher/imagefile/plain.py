"""Formats that one library reads with no more than a size check before: WebP, GIF, BMP, PSD, JPEG 2000, AVIF."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from watcher.errors import Corrupt, Truncated

from . import deep, orientation, structure
from .picture import Array, Limits, Stored

_MORE = "Copy it again; the file is not all there."
_NAMES = {"webp": "WEBP", "gif": "GIF", "bmp": "BMP", "psd": "PSD", "jp2": "JPEG2000", "avif": "AVIF"}


def webp(data: bytes, limits: Limits) -> Stored:
    """RFC 9649. The size is read from the chunks first: opening a WebP allocates its canvas."""
    chunks = _riff_chunks(data)
    width, height = _webp_size(chunks)
    limits.check(width, height, len(data))
    frames = sum(name == b"ANMF" for name, _ in chunks)
    notes = (f"first of {frames} frames",) if frames > 1 else ()
    exif = dict(chunks).get(b"EXIF", b"")
    return _read("webp", data, limits, notes=notes, turned=orientation.from_exif(exif) if exif else 1)


def _riff_chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    end = min(len(data), 8 + int.from_bytes(data[4:8], "little"))
    found, at = [], 12
    while at + 8 <= end:
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + length > end:
            raise Truncated("the WebP ends before its picture does", _MORE)
        found.append((data[at : at + 4], data[at + 8 : at + 8 + length]))
        at += 8 + length + length % 2
    return found


def _webp_size(chunks: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    """The largest of the sizes that the chunks state (RFC 9649 2.6, 2.7; RFC 6386 9.1)."""
    sizes = []
    for name, body in chunks:
        if name == b"VP8X" and len(body) >= 10:
            sizes.append((1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")))
        elif name == b"VP8L" and len(body) >= 5:
            packed = int.from_bytes(body[1:5], "little")
            sizes.append((1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)))
        elif name == b"VP8 " and len(body) >= 10:
            sides = int.from_bytes(body[6:8], "little"), int.from_bytes(body[8:10], "little")
            sizes.append((sides[0] & 0x3FFF, sides[1] & 0x3FFF))
    if not sizes:
        raise Corrupt("the WebP holds no picture", "Export it again.")
    return max(sizes, key=lambda size: size[0] * size[1])


def gif(data: bytes, limits: Limits) -> Stored:
    """GIF89a, first frame on its canvas. Its size and the canvas count, later frames are never allocated."""
    end, frames, pixels = structure.gif_walk(io.BytesIO(data), len(data))
    limits.check(pixels, 1, len(data))
    if end is None and frames <= 1:
        raise Truncated("the GIF ends before its picture does", _MORE)
    return _read("gif", data, limits, notes=(f"first of {frames} frames",) if frames > 1 else ())


def bmp(data: bytes, limits: Limits) -> Stored:
    """Windows bitmaps, with palette, RLE or bit fields."""
    if len(data) < structure.bmp_bytes(data[:54]) and len(data) > 54:
        limits.check(abs(int.from_bytes(data[18:22], "little", signed=True)), 1, len(data))
        raise Truncated("the BMP ends before its picture does", _MORE)
    return _read("bmp", data, limits)


def psd(data: bytes, limits: Limits) -> Stored:
    """Photoshop: the composite that it saves with "maximise compatibility"."""
    return deep.psd(data, limits) if deep.psd_bits(data) == 16 else _read("psd", data, limits)


def jp2(data: bytes, limits: Limits) -> Stored:
    """JPEG 2000. The decoder accepts a codestream without its end, so the end was asked for before."""
    return deep.jp2(data, limits) if deep.jp2_bits(data) > 8 else _read("jp2", data, limits)


def avif(data: bytes, limits: Limits) -> Stored:
    """AVIF. ``irot`` and ``imir`` come as an orientation from the library and are applied once."""
    return (
        deep.avif(data, limits, _nclx(data))
        if deep.avif_bits(data) > 8
        else _read("avif", data, limits, exif=True, coded=_nclx(data))
    )


def _nclx(data: bytes) -> tuple[int, int] | None:
    """(primaries, transfer) of the first ``colr`` box of kind nclx (ISO/IEC 14496-12, 12.1.5)."""
    at = data.find(b"colrnclx", 0, 1 << 16)
    if at < 0 or at + 12 > len(data):
        return None
    return int.from_bytes(data[at + 8 : at + 10], "big"), int.from_bytes(data[at + 10 : at + 12], "big")


def _read(  # noqa: PLR0913
    name: str,
    data: bytes,
    limits: Limits,
    *,
    notes: tuple[str, ...] = (),
    turned: int = 1,
    exif: bool = False,
    coded: tuple[int, int] | None = None,
) -> Stored:
    from .library import open_image

    with open_image(data, _NAMES[name]) as image:
        width, height = image.size
        limits.check(width, height, len(data))
        bits = 16 if image.mode.startswith("I") else 1 if image.mode == "1" else 8
        if exif:
            turned = orientation.from_exif(image.info.get("exif", b""))
        icc = image.info.get("icc_profile") or None
        samples, alpha = _split(image)
    return Stored(
        samples,
        width,
        height,
        alpha=alpha,
        bits=bits,
        orientation=turned,
        space="CMYK" if samples.ndim == 3 and samples.shape[2] == 4 else "GRAY" if samples.ndim == 2 else "RGB",
        icc=icc,
        coded=coded,
        notes=notes,
    )


_CONVERT: dict[str, str] = {
    "P": "RGB",
    "PA": "RGBA",
    "1": "L",
    "RGBX": "RGB",
    "YCbCr": "RGB",
    "RGBa": "RGBA",
    "La": "LA",
}


def _split(image: Any) -> tuple[Array, Array | None]:
    """(colour samples, alpha) of an opened image; RGB stays as stored under the transparent parts."""
    image.load()
    mode = image.mode
    if mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    elif mode in _CONVERT:
        image = image.convert(_CONVERT[mode])
    elif mode == "LAB":
        from PIL import ImageCms

        image = ImageCms.profileToProfile(
            image, ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), outputMode="RGB"
        )
    array = np.asarray(image)
    if array.dtype == np.int32:
        array = np.clip(array, 0, 65535).astype(np.uint16)
    if image.mode in ("LA", "RGBA"):
        colours = array[..., 0] if image.mode == "LA" else array[..., :3]
        return np.ascontiguousarray(colours), np.ascontiguousarray(array[..., -1])
    return array.astype(array.dtype.newbyteorder("=")), None


READERS: dict[str, Callable[[bytes, Limits], Stored]] = {
    "webp": webp,
    "gif": gif,
    "bmp": bmp,
    "psd": psd,
    "jp2": jp2,
    "avif": avif,
}
