"""More than eight bits in AVIF, JPEG 2000 and PSD: nothing of them is lost on the way in."""

from __future__ import annotations

import struct
from typing import Any

import imagecodecs
import numpy as np
import pytest

from watcher import imagefile
from watcher.errors import FrameError, TooLarge, Truncated, Unsupported

Array = np.ndarray[Any, Any]


def ramp(bits: int, channels: int = 3) -> Array:
    """(40, 60, channels) of ``bits``: more steps than eight bits can tell apart."""
    top = (1 << bits) - 1
    x = np.linspace(0, top, 60 * 40).reshape(40, 60)
    return np.stack([np.clip(x * (1 - 0.2 * n), 0, top) for n in range(channels)], axis=-1).astype(np.uint16)


def psd(planes: Array, *, packed: bool = False, large: bool = False, mode: int = 3, alpha: bool = False) -> bytes:
    """A PSD or PSB of 16 bits without layers; ``planes`` (channels, H, W)."""
    if alpha:
        planes = np.concatenate((planes, planes[:1]))
    channels, height, width = planes.shape
    head = b"8BPS" + struct.pack(">H6xHIIHH", 2 if large else 1, channels, height, width, 16, mode)
    head += struct.pack(">II", 0, 0) + (struct.pack(">Q", 0) if large else struct.pack(">I", 0))
    big = planes.astype(">u2")
    if not packed:
        return head + struct.pack(">H", 0) + big.tobytes()
    rows = [imagecodecs.packbits_encode(row.tobytes()) for plane in big for row in plane]
    counts = b"".join(struct.pack(">I" if large else ">H", len(row)) for row in rows)
    return head + struct.pack(">H", 1) + counts + b"".join(rows)


@pytest.mark.parametrize("bits", [10, 12])
def test_avif_keeps_its_bits(bits: int) -> None:
    """Lossless AVIF of 10 and 12 bits comes out as 16, to within the rounding of that scaling."""
    stored = ramp(bits)
    data = bytes(imagecodecs.avif_encode(stored, bitspersample=bits, level=100, pixelformat="444"))
    picture = imagefile.decode(data, max_pixels=10**6)
    assert (picture.bits, picture.pixels.dtype.name) == (bits, "uint16")
    assert np.abs(picture.pixels / 65535 - stored / ((1 << bits) - 1)).max() < 3 / 65535
    with pytest.raises(TooLarge):
        imagefile.decode(data, max_pixels=100)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("bits", [12, 16])
@pytest.mark.parametrize("container", ["jp2", "j2k"])
def test_jpeg_2000_keeps_its_bits_in_colour(container: str, bits: int, channels: int) -> None:
    """Colour of more than eight bits, with and without alpha, from JP2 and codestreams."""
    stored = ramp(bits, channels)
    data = bytes(imagecodecs.jpeg2k_encode(stored, level=0, codecformat=container, bitspersample=bits))
    picture = imagefile.decode(data, max_pixels=10**6)
    assert (picture.bits, picture.pixels.dtype.name) == (bits, "uint16")
    assert np.abs(picture.pixels / 65535 - stored[..., :3] / ((1 << bits) - 1)).max() < 3 / 65535
    assert (picture.alpha is not None) is (channels == 4)
    with pytest.raises(FrameError):
        imagefile.decode(data[: len(data) // 2], max_pixels=10**6)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("alpha", [False, True])
def test_psd_of_16_bits(packed: bool, large: bool, alpha: bool) -> None:
    """The composite comes out exactly, packed or not, from PSD and PSB, whatever further channels there are."""
    stored = ramp(16)
    data = psd(stored.transpose(2, 0, 1), packed=packed, large=large, alpha=alpha)
    picture = imagefile.decode(data, max_pixels=10**6)
    assert picture.bits == 16
    assert np.array_equal(picture.pixels, stored)
    for cut in (len(data) // 2, len(data) - 3 if not alpha else len(data) // 3):
        with pytest.raises(Truncated):
            imagefile.decode(data[:cut], max_pixels=10**6)
    with pytest.raises(TooLarge):
        imagefile.decode(data, max_pixels=100)


def test_psd_of_16_bits_in_gray_and_in_what_is_not_read() -> None:
    """Gray is read; CMYK of 16 bits is refused with what to do."""
    stored = ramp(16)[..., 0]
    picture = imagefile.decode(psd(stored[None], mode=1), max_pixels=10**6)
    assert np.array_equal(picture.pixels[..., 1], stored)
    with pytest.raises(Unsupported, match="RGB"):
        imagefile.decode(psd(np.repeat(stored[None], 4, axis=0), mode=4), max_pixels=10**6)
