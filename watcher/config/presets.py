"""Bundles of output defaults, named after the application that reads the maps.

Only what the application's own documentation says is called confirmed (``docs/configuration.md`` has the table).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "resolve": {"format": "png16", "near": "white"},
        "blender": {"format": "png16", "near": "white"},
        "after-effects": {"format": "png16", "near": "black"},
        "photoshop": {"format": "tiff16", "near": "black"},
        "nuke": {"format": "exr", "near": "white"},
        "final-cut": {"format": "png16", "near": "white"},
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
