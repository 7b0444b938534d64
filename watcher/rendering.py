"""Rendering: the raw depth of one frame becomes every file that the settings ask for, all of one mind."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watcher import __version__, depth, imagefile
from watcher.clock import stamp
from watcher.config import Output as OutputSettings
from watcher.frame import Aside, Raw, readable
from watcher.outbox import Output

log = logging.getLogger(__name__)

_KINDS: Mapping[str, depth.Kind] = {"png16": "uint16", "tiff16": "uint16", "png8": "uint8", "jpg": "uint8"}
_HALF_MOST = 65504.0  # the largest finite value of a 16-bit float (IEEE 754 binary16)
_BESIDE_PX = 1024


@dataclass(frozen=True, slots=True)
class Span:
    """The raw values that become the two ends of the scale, or ``None`` for the map's own; and how that is called."""

    ends: tuple[float, float] | None
    mode: str
    note: str = ""


def span_of(raw: Raw, settings: OutputSettings) -> Span:
    """The range that one frame has by itself. A frame that belongs to no shot has its own minimum and maximum."""
    wanted = settings.range
    if isinstance(wanted, tuple):
        return Span(wanted, "fixed")
    if isinstance(wanted, str):
        return Span(None, "frame", "" if wanted == "frame" else "it belongs to no shot")
    ends = depth.of_percentiles(raw.depth, wanted.percentile)
    mode = "percentile {:g} {:g}".format(*wanted.percentile)
    return Span(ends, mode) if ends else Span(None, "frame", f"{mode} would be one value")


def aside(picture: imagefile.Picture, settings: OutputSettings) -> Aside | None:
    """What ``render`` will need of the picture itself; ``None`` where that is nothing."""
    beside = settings.side_by_side and settings.preview != "none"
    alpha = picture.alpha if settings.alpha == "mask" else None
    refined = refines(settings)
    if not beside and alpha is None and not refined:
        return None
    return Aside(
        imagefile.smaller(picture.pixels, _BESIDE_PX) if beside else None,
        None if alpha is None else (alpha >> 8).astype(np.uint8) if alpha.dtype == np.uint16 else alpha,
        depth.guide_of(picture.pixels) if refined else None,
    )


def refines(settings: OutputSettings) -> bool:
    """Whether the picture itself is needed at its full size when the map is made."""
    return settings.refine == "edges" and settings.size == "source"


def render(
    raw: Raw, settings: OutputSettings, about: Mapping[str, Any], span: Span | None = None
) -> tuple[Output, ...]:
    """Every file that one frame gives, the map itself first. Raises ``NoDepth``.

    ``raw.depth`` (h, w) float32, relative inverse depth, larger is nearer. ``span``: the range, where more than this
    frame decides about it.
    """
    press = _Press(raw, settings, span or span_of(raw, settings))
    main = press.finished(_KINDS.get(settings.formats[0], "float32"))
    if main.nonfinite:
        log.warning("%s: %d values of the network's output were not finite and became 0", raw.frame, main.nonfinite)
    facts = {
        "program": f"depth-watcher {__version__}",
        "made": stamp(),
        **raw.facts,
        **about,
        **press.facts(main),
    }
    texts = {key: readable(str(value)) for key, value in facts.items()}
    outputs = [Output(imagefile.extension(fmt), press.encoded(fmt, texts)) for fmt in settings.formats]
    if settings.preview != "none":
        shown = main.values if main.values.dtype.kind == "u" else press.finished("uint8").values
        beside = raw.aside.picture if raw.aside is not None else None
        outputs.append(Output(".preview.jpg", imagefile.preview(shown, settings.preview, beside)))
    if settings.sidecar:
        outputs.append(Output(".json", json.dumps(facts, indent=2).encode() + b"\n"))
    return tuple(outputs)


class _Press:
    """One frame's maps: each kind of value is made once, whatever number of files it goes into."""

    def __init__(self, raw: Raw, settings: OutputSettings, span: Span) -> None:
        self._raw, self._settings, self._span = raw, settings, span
        self._made: dict[str, depth.DepthMap] = {}
        self._depth, self._dropped, self._refined = raw.depth, 0, False
        if raw.aside is not None and raw.aside.guide is not None:
            self._depth, self._dropped = depth.snapped(raw.depth, raw.aside.guide)
            self._refined = self._depth is not raw.depth
        self._masked = 0

    def finished(self, kind: depth.Kind) -> depth.DepthMap:
        if kind not in self._made:
            raw, settings = self._raw, self._settings
            size = (raw.height_px, raw.width_px) if settings.size == "source" else None
            made = depth.finish(self._depth, size, kind=kind, near=settings.near, fixed_range=self._span.ends)
            made = replace(made, nonfinite=made.nonfinite + self._dropped)
            if raw.aside is not None and raw.aside.alpha is not None:
                self._masked = depth.mask_far(made.values, raw.aside.alpha, (made.low, made.high), settings.near)
            self._made[kind] = made
        return self._made[kind]

    def encoded(self, fmt: str, texts: Mapping[str, str]) -> bytes:
        values: NDArray[Any] = self.finished(_KINDS.get(fmt, "float32")).values
        if fmt != "exr":
            return imagefile.encode(values, fmt, texts)
        wanted = self._settings.exr_type
        if wanted == "half" and float(np.abs(values).max()) > _HALF_MOST:
            log.warning("%s: its values do not fit into 16-bit floats; the EXR has 32-bit ones", self._raw.frame)
            wanted = "float"
        if wanted == "half":
            values = values.astype(np.float16)
        return imagefile.encode(values, fmt, texts, channel=self._settings.exr_channel)

    def facts(self, made: depth.DepthMap) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "near": self._settings.near,
            "range": self._span.mode,
            "range_min": made.low,
            "range_max": made.high,
            "raw_min": made.raw_min,
            "raw_max": made.raw_max,
            "nonfinite": made.nonfinite,
        }
        if self._span.note:
            facts["range_note"] = self._span.note
        if self._refined:
            facts["refine"] = "edges"
        if self._masked:
            facts["masked"] = self._masked
        return facts
