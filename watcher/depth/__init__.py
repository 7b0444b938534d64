"""Pictures to tensors, raw depth to depth maps. Pure arithmetic: no files, no threads, no state.

Two ways of filling the network's input:

``reference``  the published MiDaS ONNX procedure, step by step (RGB / 255 in float64, cubic interpolation straight to
               the network's size, no anti-aliasing). Source: the repository of MiDaS, folder ``tf``, its ONNX example.
``auto``       area averaging along every axis that shrinks, cubic interpolation along every axis that grows. Cubic
               decimation reads only sixteen source pixels for each network pixel, so fine patterns turn into moiré;
               averaging reads them all, and stays in the picture's own dtype while it does, which is also faster.

The way back is the same for both: cubic interpolation to the wanted size, then min-max.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from watcher import scratch
from watcher.depth.masking import mask_far
from watcher.depth.ranges import SIGNATURE_FIELDS, Running, first, of_percentiles, of_shot, quantiles, undone
from watcher.depth.refining import guide_of, snapped
from watcher.errors import NoDepth
from watcher.frame import Float32

__all__ = [
    "SIGNATURE_FIELDS",
    "DepthMap",
    "Kind",
    "Near",
    "Pixels",
    "Plan",
    "Resample",
    "Running",
    "finish",
    "first",
    "guide_of",
    "input_size",
    "mask_far",
    "min_side_px",
    "of_percentiles",
    "of_shot",
    "prepare",
    "quantiles",
    "snapped",
    "undone",
]

Pixels = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.float32]
Triple = tuple[float, float, float]
Resample = Literal["auto", "reference"]
Kind = Literal["uint16", "uint8", "float32"]
Near = Literal["white", "black"]

_FULL: dict[str, float] = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
_BAND_BYTES = 8 << 20
_CONSTANT = float(np.finfo(np.float64).eps)  # the published threshold below which a map has no depth in it
_WIDE = 1e30  # beyond this, differences of float32 values may overflow


# -- pictures to tensors ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """How a picture fills the network's input.

    ``height_px``/``width_px``  the network's size; where it is not fixed, the smallest size of either side
    ``fixed``                   True: every picture is stretched to that size. False: the aspect is kept
    ``multiple``                free sides are multiples of this many pixels
    ``upper_px``                no free side is longer (0: no bound); longer pictures are squeezed, never padded
    ``mean``/``std``            for each of R, G, B in 0..1, or ``None`` where the graph holds them itself
    """

    height_px: int
    width_px: int
    fixed: bool = True
    multiple: int = 1
    upper_px: int = 0
    mean: Triple | None = None
    std: Triple | None = None
    resample: Resample = "auto"


def input_size(plan: Plan, height_px: int, width_px: int) -> tuple[int, int]:
    """(height, width) in pixels of the tensor that ``prepare`` makes of a picture of this size.

    Free sizes follow the published rule of Depth Anything: one scale for both sides, the smaller one reaches the
    lower bound, each is rounded to the multiple and never falls below the bound.
    """
    if plan.fixed:
        return plan.height_px, plan.width_px
    scale = max(plan.height_px / height_px, plan.width_px / width_px)
    return (
        _fit(height_px * scale, plan.height_px, plan),
        _fit(width_px * scale, plan.width_px, plan),
    )


def _fit(side_px: float, lower_px: int, plan: Plan) -> int:
    step = plan.multiple
    upper_px = plan.upper_px // step * step
    if upper_px and side_px > upper_px:
        return upper_px
    fitted = round(side_px / step) * step
    return fitted if fitted >= lower_px else -(-lower_px // step) * step


def min_side_px(plan: Plan) -> int:
    """How many pixels a decoder must deliver on each side at least; 0 means all of them.

    Twice the network's size, so that what a decoder has shrunk is still averaged once more; ``reference`` sees every
    pixel because its definition does.
    """
    return 0 if plan.resample == "reference" else 2 * max(plan.height_px, plan.width_px)


def prepare(pixels: Pixels, plan: Plan) -> Float32:
    """Make the network's input of one picture.

    ``pixels`` (H, W, 3) RGB, uint8 0..255, uint16 0..65535 or float32 0..1, upright. Returns (1, 3, h, w) float32,
    C-contiguous, RGB in about 0..1 (cubic interpolation overshoots a little), then minus mean, over std where the
    plan has them. Raises ``ValueError`` for another shape or dtype: a mistake of the caller, not of the picture.
    """
    full = _FULL.get(pixels.dtype.name)
    if full is None or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise ValueError(f"pixels must be (H, W, 3) uint8, uint16 or float32, not {pixels.shape} {pixels.dtype}")
    size = input_size(plan, pixels.shape[0], pixels.shape[1])
    if plan.resample == "reference":
        small, full = _resize_reference(pixels, size, full), 1.0
    else:
        small = _resize_auto(pixels, size, full)
        full = _FULL[small.dtype.name]
    return _planes(small, full, plan)


def _planes(small: NDArray[Any], full: float, plan: Plan) -> Float32:
    """(h, w, 3) to (1, 3, h, w): each plane is scaled on its way to its place, so nothing is copied twice."""
    tensor = np.empty((1, 3, *small.shape[:2]), np.float32)
    work = np.float64 if small.dtype == np.float64 else np.float32
    for channel, plane in enumerate(cv2.split(small)):
        part: NDArray[Any] = tensor[0, channel] if work is np.float32 else np.empty(plane.shape, work)
        np.divide(plane, work(full), out=part, dtype=work)
        if plan.mean is not None:
            part -= work(plan.mean[channel])
        if plan.std is not None:
            part /= work(plan.std[channel])
        tensor[0, channel] = part
    return tensor


def _resize_reference(pixels: Pixels, size: tuple[int, int], full: float) -> NDArray[Any]:
    """(h, w, 3) float64 0..1. Equal to one cubic resize of the whole picture in float64, bit for bit.

    Cubic interpolation is separable and leaves an axis alone whose length stays, so the width is done first, in bands
    of rows: the float64 copy of the whole picture (288 MB for 12 megapixels) is never made.
    """
    height, width = size
    rows, columns = pixels.shape[:2]
    band = max(1, _BAND_BYTES // (columns * 3 * 8))
    narrow = np.empty((rows, width, 3), np.float64)
    for top in range(0, rows, band):
        part = pixels[top : top + band].astype(np.float64)
        part /= full
        narrow[top : top + band] = cv2.resize(part, (width, len(part)), interpolation=cv2.INTER_CUBIC)
    return np.asarray(cv2.resize(narrow, (width, height), interpolation=cv2.INTER_CUBIC))


def _resize_auto(pixels: Pixels, size: tuple[int, int], full: float) -> NDArray[Any]:
    """(h, w, 3) of the picture's own dtype, or float32 0..1 where an axis grows.

    First every axis that shrinks, averaged, then every axis that grows, cubic.
    """
    height, width = size
    shrunk = (min(width, pixels.shape[1]), min(height, pixels.shape[0]))
    small: NDArray[Any] = pixels
    whole = min(pixels.shape[1] // shrunk[0], pixels.shape[0] // shrunk[1])
    if whole > 1 and not pixels.shape[1] % whole and not pixels.shape[0] % whole:
        # Whole blocks first: the same average, for a third of the cost.
        blocks = (pixels.shape[1] // whole, pixels.shape[0] // whole)
        small = np.asarray(cv2.resize(pixels, blocks, interpolation=cv2.INTER_AREA))
    if shrunk != (small.shape[1], small.shape[0]):
        small = np.asarray(cv2.resize(small, shrunk, interpolation=cv2.INTER_AREA))
    if shrunk != (width, height):
        small = small.astype(np.float32)
        small /= np.float32(full)
        small = np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC))
    return small


# -- raw depth to depth maps --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DepthMap:
    """A finished map and what is needed to undo its scaling.

    ``values``             (H, W) uint16, uint8 or float32
    ``raw_min``/``raw_max`` of the relative inverse depth at the map's own size
    ``low``/``high``       the range: the raw values that became the two ends of the scale
    ``nonfinite``          how many values were NaN or infinite and became 0
    ``constant``           True: the picture holds no depth; integer maps are all 0
    """

    values: NDArray[Any]
    raw_min: float
    raw_max: float
    low: float
    high: float
    nonfinite: int
    constant: bool


def finish(
    raw: Float32,
    size: tuple[int, int] | None,
    *,
    kind: Kind = "uint16",
    near: Near = "white",
    fixed_range: tuple[float, float] | None = None,
) -> DepthMap:
    """Make a depth map of what the network returned.

    ``raw`` (h, w) float32, relative inverse depth, larger is nearer; left as it is. ``size`` (H, W) in pixels, or
    ``None`` for the network's own. Steps: non-finite values become 0 and are counted; cubic interpolation to ``size``;
    the range is the map's own (min, max), or ``fixed_range``, beyond which integer maps clip.

    uint16, uint8: ``(d - low) / (high - low)`` times 65535 or 255, rounded to nearest; the published code cuts
    instead, so it may say one less. ``near="black"`` is that value subtracted from 65535 or 255. A constant map is 0.

    float32: the relative inverse depth itself, unscaled and never clipped, so that nothing has to be undone.
    ``near="black"`` mirrors it inside the range (``low + high - d``): smaller is then nearer, the unit is kept.

    Raises ``NoDepth`` when not one value is finite, ``ValueError`` for another shape of ``raw``.
    """
    if raw.ndim != 2 or 0 in raw.shape:
        raise ValueError(f"raw depth must be (h, w), not {raw.shape}")
    clean, nonfinite = _only_finite(raw)
    # Asked before enlarging: interpolating a flat map leaves rounding noise, which min-max would blow up to a pattern.
    constant = not float(clean.max()) - float(clean.min()) > _CONSTANT
    depth, overshot = _flat(clean, size) if constant else _enlarge(clean, size, kind), 0
    raw_min, raw_max = float(depth.min()), float(depth.max())
    if not np.isfinite(raw_max - raw_min):  # interpolating near the end of float32 may overflow; that is counted too
        depth, overshot = _only_finite(depth)
        raw_min, raw_max = float(depth.min()), float(depth.max())
    low, high = fixed_range if fixed_range is not None else (raw_min, raw_max)
    if kind == "float32":
        values: NDArray[Any] = np.subtract(low + high, depth, dtype=np.float32) if near == "black" else depth
    elif (constant and fixed_range is None) or not high - low > _CONSTANT:
        values = np.zeros(depth.shape, kind)
    else:
        values = _scale(depth, low, high, kind)
        if near == "black":
            np.subtract(values.dtype.type(_FULL[kind]), values, out=values)
    return DepthMap(values, raw_min, raw_max, low, high, nonfinite + overshot, constant)


def _only_finite(raw: Float32) -> tuple[Float32, int]:
    """Before interpolation, so that one bad value stays one bad value instead of sixteen."""
    finite = np.isfinite(raw)
    bad = int(raw.size - np.count_nonzero(finite))
    if bad == raw.size:
        raise NoDepth(
            "the network returned no usable value for this picture",
            "Try another model or `model.provider: cpu`; `depth-watcher retry` brings the picture back.",
        )
    if bad == 0:
        return raw, 0
    return np.where(finite, raw, np.float32(0)), bad


def _flat(clean: Float32, size: tuple[int, int] | None) -> Float32:
    return np.full(size or clean.shape, clean.flat[0], np.float32)


def _enlarge(clean: Float32, size: tuple[int, int] | None, kind: Kind) -> Float32:
    """Another (H, W) float32 array."""
    if size is None or size == clean.shape:
        return clean.astype(np.float32, copy=True)
    into = scratch.empty("map float32" if kind == "float32" else "enlarged", size, np.float32)
    return np.asarray(cv2.resize(clean, (size[1], size[0]), dst=into, interpolation=cv2.INTER_CUBIC), np.float32)


def _scale(depth: Float32, low: float, high: float, kind: Kind) -> NDArray[Any]:
    """Integers of the whole map, in bands that fit the processor's cache; ``depth`` stays as it is."""
    full = _FULL[kind]
    work: type[np.floating[Any]] = np.float64 if max(abs(low), abs(high)) > _WIDE else np.float32
    values = scratch.empty(f"map {kind}", depth.shape, kind)
    band = max(1, (1 << 18) // depth.shape[1])
    for top in range(0, len(depth), band):
        part = np.subtract(depth[top : top + band], work(low), dtype=work)
        part *= work(full / (high - low))
        np.clip(part, 0.0, full, out=part)
        part += work(0.5)
        values[top : top + band] = part  # cutting after adding a half is rounding
    return values
