"""Bytes to an upright sRGB picture: sniff, read, reduce, colour, turn. One reader per format."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from watcher.errors import Corrupt, FrameError, NotAPicture, TooLarge, Truncated, Unsupported
from watcher.frame import Wholeness

from . import anymap, colour, exr, heif, jpeg, plain, png, tiff
from .orientation import swaps_sides, upright
from .picture import Array, Limits, Picture, Stored
from .sniff import HEAD_BYTES, describe, sniff
from .wholeness import SIZED_IN_FRONT, wholeness

_READERS: dict[str, Callable[[bytes, Limits], Stored]] = {
    "jpeg": jpeg.read,
    "png": png.read,
    "tiff": tiff.read,
    "heif": heif.read,
    "exr": exr.read,
    "pnm": anymap.pnm,
    "pfm": anymap.pfm,
    "hdr": anymap.hdr,
    **plain.READERS,
}


_CHANNELS: dict[str, tuple[int, ...]] = {"GRAY": (), "RGB": (3,), "LAB": (3,), "CMYK": (4,)}


def decode(data: bytes, *, max_pixels: int, min_side_px: int = 0) -> Picture:
    """The picture in ``data``, upright and in sRGB.

    ``max_pixels``: the largest picture to accept, checked before anything is allocated. ``min_side_px``: 0 for every
    pixel, else reduced decoding is allowed as long as both sides keep at least this many pixels (or all of theirs).

    Raises NotAPicture, Unsupported, Truncated, Corrupt or TooLarge. A decoder that would paint the missing half gray
    is not believed: the end of the file is checked first.
    """
    name = _recognised(data)
    limits = Limits(max_pixels, min_side_px)
    if name in SIZED_IN_FRONT and wholeness(io.BytesIO(data), len(data)) is Wholeness.PARTIAL:
        raise _cut_short(name)
    try:
        stored = _READERS[name](data, limits)
        return _finished(name, stored, limits)
    except FrameError:
        raise
    except MemoryError as error:
        raise TooLarge("there is not enough memory for the picture", "Lower limits.max_pixels.") from error
    except Exception as error:  # whatever a decoder throws at hostile bytes, it is the file's fault
        said = str(error).strip().rstrip(".") or type(error).__name__
        if wholeness(io.BytesIO(data), len(data)) is Wholeness.PARTIAL or "truncated" in said.lower():
            raise _cut_short(name) from error
        raise Corrupt(f"the {name.upper()} cannot be decoded ({said[:200]})", "Export or copy it again.") from error


def _cut_short(name: str) -> Truncated:
    return Truncated(f"the {name.upper()} ends before its picture does", "Copy it again; the file is not all there.")


def _recognised(data: bytes) -> str:
    head = data[:HEAD_BYTES]
    name = sniff(head)
    if name in _READERS:
        return name
    if name is not None:
        raise Unsupported(f"{name.upper()} pictures cannot be read", "Save it as JPEG, PNG, TIFF or HEIC.")
    if not head.strip(b"\0") or head in (b"\xff", b"\xff\xd8"):
        what = "the file is empty" if not data else "the file begins with nothing but zeros: its copy was not finished"
        raise Truncated(what if not head.strip(b"\0") else "the JPEG ends within its header", "Copy it again.")
    raise NotAPicture(f"the file is no picture: it looks like {describe(head)}", "Put pictures only into the inbox.")


def _check_shape(name: str, stored: Stored) -> None:
    """What was decoded must be as large as the header says, or that reduced by eighths, as JPEG decoders do it; and it
    must have the channels of its colour space."""
    if stored.samples.shape[2:] != _CHANNELS[stored.space]:
        raise Corrupt(
            f"the {name.upper()} contradicts itself: its {stored.space} has other channels", "Export it again."
        )
    sides = stored.samples.shape[:2]
    if not any(sides == (-(-stored.height * part // 8), -(-stored.width * part // 8)) for part in range(1, 9)):
        found = f"{sides[1]} x {sides[0]} pixels instead of {stored.width} x {stored.height}"
        raise Corrupt(f"the {name.upper()} contradicts itself: it holds {found}", "Export it again.")


def _finished(name: str, stored: Stored, limits: Limits) -> Picture:
    _check_shape(name, stored)
    factor = limits.factor(stored.samples.shape[1], stored.samples.shape[0])
    notes = stored.notes
    samples, alpha = _reduced(stored.samples, factor), stored.alpha
    if alpha is not None:
        alpha = np.ascontiguousarray(upright(_reduced(alpha, factor), stored.orientation))
    pixels, said = colour.to_srgb(replace(stored, samples=samples))
    turned = swaps_sides(stored.orientation)
    return Picture(
        pixels=np.ascontiguousarray(upright(pixels, stored.orientation)),
        height_px=stored.width if turned else stored.height,
        width_px=stored.height if turned else stored.width,
        alpha=alpha,
        format=name,
        bits=stored.bits,
        orientation=stored.orientation,
        notes=(*notes, *said),
    )


def _reduced(samples: Array, factor: int) -> Array:
    """Each block of ``factor`` x ``factor`` pixels as its mean; a rest at the right and below is shared out."""
    if factor < 2:
        return samples
    import cv2

    size = (samples.shape[1] // factor, samples.shape[0] // factor)
    return cv2.resize(samples, size, interpolation=cv2.INTER_AREA)
