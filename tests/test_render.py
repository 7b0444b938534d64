"""What one frame gives: the map, its preview and its sidecar, in every format, and all of one mind."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from watcher.config import Output as OutputSettings
from watcher.frame import Frame, Identity, Raw, Source
from watcher.imagefile import FORMATS
from watcher.rendering import render

HEIGHT_PX, WIDTH_PX = 48, 64
# Near (large) at the right, raw values far from 0..1, as MiDaS gives them.
DEPTH = np.repeat(np.linspace(200.0, 1700.0, WIDTH_PX, dtype=np.float32)[None], HEIGHT_PX, axis=0)


def made(**settings: Any) -> dict[str, bytes]:
    source = Source(Path("/in"), "a.jpg", "a.jpg", Identity(1, 1))
    raw = Raw(Frame(1, source, 0, "a_depth"), DEPTH, HEIGHT_PX, WIDTH_PX, {"source": "a.jpg"})
    return {output.ending: output.data for output in render(raw, OutputSettings(**settings), {"model": "fake"})}


def pixels(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


@pytest.mark.parametrize("near", ["white", "black"])
@pytest.mark.parametrize("format_", FORMATS)
def test_the_preview_shows_the_map(format_: str, near: str) -> None:
    """Whatever the format, the preview runs over the whole scale, the same way as the map: floats are not clipped."""
    files = made(format=format_, preview="gray", near=near)
    assert len(files) == 2
    with Image.open(io.BytesIO(files[".preview.jpg"])) as image:
        row = np.asarray(image.convert("L"), np.int32)[HEIGHT_PX // 2]
    assert abs(int(row[0]) - (0 if near == "white" else 255)) < 6
    assert abs(int(row[-1]) - (255 if near == "white" else 0)) < 6
    assert abs(int(row[WIDTH_PX // 2]) - 128) < 10


def test_the_sidecar_undoes_the_scaling() -> None:
    """What it says brings the raw values back to within the bit depth."""
    files = made(sidecar=True)
    facts = json.loads(files[".json"])
    map_ = pixels(files[".png"]).astype(np.float64)
    low, high = facts["range_min"], facts["range_max"]
    assert np.abs(map_ / 65535 * (high - low) + low - DEPTH).max() <= (high - low) / 65535
    assert {"source", "model", "near", "raw_min", "raw_max", "nonfinite", "program"} <= set(facts)


def test_a_fixed_range_and_the_models_size() -> None:
    """A fixed range clips and is told; `size: model` keeps what the network gave."""
    files = made(range=[500.0, 1000.0], size="model", sidecar=True)
    map_ = pixels(files[".png"])
    assert map_.shape == DEPTH.shape
    assert (map_[:, 0] == 0).all()
    assert (map_[:, -1] == 65535).all()
    facts = json.loads(files[".json"])
    assert (facts["range"], facts["range_min"], facts["range_max"]) == ("fixed", 500.0, 1000.0)
