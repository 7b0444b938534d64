"""Bundles of output defaults, named after the application that reads the maps.

Each says all that decides how its file is read: the name, the bits of a value (in the format), which end is near, the
channel, which only counts in an EXR (the other formats have one unnamed gray channel). Only what the application's own
documentation says is called confirmed (``docs/configuration.md`` has the table).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NAME = "{stem}_depth"  # the frame number stays where it was, so that a numbered sequence stays one

PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "resolve": {"name": _NAME, "format": "png16", "near": "white", "exr_type": "half", "exr_channel": "Y"},
        "blender": {"name": _NAME, "format": "png16", "near": "white", "exr_type": "float", "exr_channel": "Y"},
        "after-effects": {"name": _NAME, "format": "png16", "near": "black", "exr_type": "float", "exr_channel": "Y"},
        "photoshop": {"name": _NAME, "format": "tiff16", "near": "black", "exr_type": "float", "exr_channel": "Y"},
        "nuke": {"name": _NAME, "format": "exr", "near": "white", "exr_type": "float", "exr_channel": "Z"},
        "final-cut": {"name": _NAME, "format": "png16", "near": "white", "exr_type": "half", "exr_channel": "Y"},
    }
)


def fill(entry: object) -> object:
    """A folders entry with the keys of its preset in ``output``; keys that the user gave stay as they are."""
    if not isinstance(entry, dict):
        return entry
    name, output = entry.get("preset"), entry.get("output", {})
    if not isinstance(name, str) or name not in PRESETS or not isinstance(output, dict):
        return entry
    return {**entry, "output": {**PRESETS[name], **output}}
