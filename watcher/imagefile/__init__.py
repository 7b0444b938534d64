"""Bytes to pixels and pixels to bytes: all decoders and encoders. Decoders are imported when first used.

Everything here may be called from several threads at once.
"""

from __future__ import annotations

from .picture import Array, Picture
from .readback import read_map
from .reading import decode
from .showing import COLOURS, contact_sheet, preview, smaller, thumbnail
from .sniff import HEAD_BYTES, NAMES, claims_picture, sniff
from .wholeness import wholeness
from .writing import FORMATS, encode, extension, read_facts

__all__ = [
    "COLOURS",
    "FORMATS",
    "HEAD_BYTES",
    "NAMES",
    "Array",
    "Picture",
    "claims_picture",
    "contact_sheet",
    "decode",
    "encode",
    "extension",
    "preview",
    "read_facts",
    "read_map",
    "smaller",
    "sniff",
    "thumbnail",
    "wholeness",
]
