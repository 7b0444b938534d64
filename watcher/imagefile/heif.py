"""HEIF and HEIC: turned once, by the file's own properties; 10 and 12 bits are kept."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from watcher.errors import Corrupt

from .picture import Limits, Stored


def read(data: bytes, limits: Limits) -> Stored:
    """ISO/IEC 23008-12. ``irot``, ``imir`` and ``clap`` are applied by the decoder; EXIF orientation is not, as the
    standard says. That the boxes add up is known before: the decoder would paint what is missing."""
    import pillow_heif

    file = pillow_heif.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False)
    image = file[file.primary_index]
    width, height = image.size
    if not width or not height:
        raise Corrupt("the HEIF picture has no size", "Export it again.")
    limits.check(width, height, len(data))
    array = np.asarray(image)
    info: dict[str, Any] = dict(image.info)
    bits = int(info.get("bit_depth", 8))
    colours = 3 if array.ndim == 3 and array.shape[2] >= 3 else 1
    alpha = None
    if array.ndim == 3:
        alpha = np.ascontiguousarray(array[..., colours]) if array.shape[2] > colours else None
        array = array[..., :3] if colours == 3 else array[..., 0]
    return Stored(
        np.ascontiguousarray(array),
        width,
        height,
        alpha=alpha,
        bits=bits,
        space="GRAY" if array.ndim == 2 else "RGB",
        icc=info.get("icc_profile") or None,
        coded=_coded(info.get("nclx_profile")),
        notes=(f"first of {len(file)} pictures",) if len(file) > 1 else (),
    )


def _coded(profile: Any) -> tuple[int, int] | None:
    if not isinstance(profile, dict):
        return None
    return int(profile.get("color_primaries", 2)), int(profile.get("transfer_characteristics", 2))
