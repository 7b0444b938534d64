"""Inspection: what a finished map says about its making, and the raw depth that it was made of."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from watcher import depth, imagefile
from watcher.durable import write_new
from watcher.errors import CannotCreate, FrameError, NoInput, UsageError, explain


@dataclass(frozen=True, slots=True)
class Findings:
    """``facts`` as they were written down (all of them text or numbers); ``told_by``: the map, or its sidecar's name.

    ``values`` (H, W) as stored: uint8, uint16, float16 or float32.
    """

    facts: Mapping[str, Any]
    told_by: str
    values: imagefile.Array

    def as_json(self) -> dict[str, Any]:
        """Stable keys, for programs."""
        height, width = self.values.shape
        return {
            "width_px": width,
            "height_px": height,
            "dtype": self.values.dtype.name,
            "lowest": float(self.values.min()),
            "highest": float(self.values.max()),
            "told_by": self.told_by,
            "facts": dict(self.facts),
        }


def examine(path: Path) -> Findings:
    """Look at one map. The sidecar beside it is asked where the format has no place for facts.

    Raises ``NoInput`` where the file is missing, ``UsageError`` where it is no depth map.
    """
    if not path.is_file():
        raise NoInput(f"{path} is not there", "Name a depth map.")
    try:
        values = imagefile.read_map(path)
        inside = imagefile.read_facts(path)
    except FrameError as error:
        raise UsageError(error.what, error.remedy) from error
    if inside is not None:
        return Findings(inside, "the map itself", values)
    sidecar = path.with_suffix(".json")
    return Findings(_sidecar(sidecar), sidecar.name, values) if sidecar.is_file() else Findings({}, "nobody", values)


def _sidecar(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageError(f"{path} is not JSON ({error})", "Make the map again.") from error
    return found if isinstance(found, dict) else {}


def raw_of(found: Findings) -> imagefile.Array:
    """The relative inverse depth (H, W) float32, larger is nearer, to within the bit depth of the map.

    Values that the range cut off come back as the range's ends. Raises ``UsageError`` where the range is not known.
    """
    try:
        span = float(found.facts["range_min"]), float(found.facts["range_max"])
        near = str(found.facts["near"])
    except (KeyError, ValueError, TypeError):
        span, near = (math.nan, math.nan), ""
    if not all(map(math.isfinite, span)) or near not in ("white", "black"):
        raise UsageError(
            "nothing says how this map was scaled",
            "PNG, JPEG, TIFF and EXR maps of this program say it themselves; PFM and NPY need `sidecar: true`.",
        )
    return depth.undone(found.values, span, near)


def save_raw(found: Findings, target: Path) -> None:
    """Write ``raw_of`` as a NumPy file. Raises ``CannotCreate``: an existing file is never replaced."""
    out = io.BytesIO()
    np.save(out, raw_of(found), allow_pickle=False)
    try:
        write_new(target, out.getvalue(), durable=False)
    except FileExistsError:
        raise CannotCreate(f"{target} is there already", "Name another file.") from None
    except OSError as error:
        what, remedy = explain(error)
        raise CannotCreate(f"{target} cannot be written: {what}", remedy) from error
