"""`refine: edges`: steps of a map come to lie on the picture's edges, and nothing else about it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import Home
from living import Life

from watcher import depth, imagefile
from watcher.config import Output as OutputSettings
from watcher.frame import Aside, Frame, Identity, Raw, Source
from watcher.loader import load
from watcher.rendering import aside, render

Array = np.ndarray[Any, Any]
EDGE = 333  # the column at which near begins; no boundary of the small map lies there


def scene(height_px: int = 240, width_px: int = 512) -> tuple[Array, Array]:
    """A picture (H, W, 3) uint8 of a dark wall and a light thing with some grain, and its small raw map (15, 32)."""
    grain = np.random.default_rng(3).normal(0, 2, (height_px, width_px, 1))
    light = np.where(np.arange(width_px) < EDGE, 60, 170)[None, :, None] + grain
    picture = np.repeat(np.clip(light, 0, 255).astype(np.uint8), 3, axis=2)
    true = np.where(np.arange(width_px) < EDGE, 100, 900)[None].repeat(height_px, 0).astype(np.float32)
    return picture, np.asarray(cv2.resize(true, (width_px // 16, height_px // 16), interpolation=cv2.INTER_AREA))


def width_of_step(row: Array) -> int:
    """Over how many pixels the step from 100 to 900 goes, from a tenth to nine tenths of it."""
    return int(np.count_nonzero((row > 180) & (row < 820)))


def test_a_step_snaps_to_the_edge_of_the_picture() -> None:
    """The step lies within a pixel of the picture's edge and is one pixel wide; cubic smears it over many."""
    picture, raw = scene()
    found, bad = depth.snapped(raw, depth.guide_of(picture))
    cubic = cv2.resize(raw, (512, 240), interpolation=cv2.INTER_CUBIC)
    for row in found[20:220:20]:
        assert abs(int(np.argmax(row > 500)) - EDGE) <= 1
        assert width_of_step(row) <= 1
    assert width_of_step(np.asarray(cubic[120])) > 10
    assert bad == 0


def test_a_mean_invents_nothing() -> None:
    """A picture full of pattern over even depth leaves the depth even; no value leaves the raw map's range."""
    random = np.random.default_rng(5)
    guide = random.integers(0, 256, (200, 300)).astype(np.uint8)
    slope = np.tile(np.linspace(100, 200, 30, dtype=np.float32), (20, 1))
    found, _ = depth.snapped(slope, guide)
    assert float(found.min()) >= 100
    assert float(found.max()) <= 200
    even = np.full((20, 30), 7, np.float32)
    assert depth.snapped(even, guide)[0] is even


def test_what_cannot_be_refined_stays_as_it_is() -> None:
    """No larger guide, no finite value, or values near the end of float32: the very same map comes back."""
    guide = np.zeros((40, 50), np.uint8)
    for raw in (
        np.random.default_rng(1).random((40, 50)).astype(np.float32),
        np.full((4, 5), np.nan, np.float32),
        np.array([[3e38, -3e38]], np.float32),
    ):
        assert depth.snapped(raw, guide)[0] is raw


def test_values_that_are_not_finite_are_counted_once() -> None:
    """NaN of the network becomes 0 and is told of, as without refining."""
    picture, raw = scene()
    raw[3, 4] = np.nan
    found, bad = depth.snapped(raw, depth.guide_of(picture))
    assert bad == 1
    assert np.isfinite(found).all()
    facts = json.loads(render(*asked(picture, raw, refine="edges"))[-1].data)
    assert facts["nonfinite"] == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_the_guide_is_lightness(dtype: Any) -> None:
    """Whatever the picture's depth, white guides as 255 and black as 0, in the picture's size."""
    full = 1.0 if dtype is np.float32 else np.iinfo(dtype).max
    picture: Array = np.zeros((3000, 700, 3), dtype)
    picture[1500:] = full
    guide = depth.guide_of(picture)
    assert guide.shape == (3000, 700)
    assert (guide[:1500] == 0).all()
    assert (guide[1500:] == 255).all()


def test_a_huge_picture_guides_by_its_half() -> None:
    """What travels with a frame stays below 50 MB; the map still has the picture's size."""
    guide = depth.guide_of(np.broadcast_to(np.uint8(9), (7000, 8000, 3)))
    assert guide.shape == (3500, 4000)


def asked(picture: Array, raw: Array, **settings: Any) -> tuple[Raw, OutputSettings, dict[str, Any]]:
    """What ``render`` is asked for a picture and its raw map."""
    height, width = picture.shape[:2]
    output = OutputSettings(**{"format": "npy", "sidecar": True, **settings})
    source = Source(Path("/in"), "a.png", "a.png", Identity(1, 1))
    beside = aside(imagefile.Picture(picture, height, width), output)
    return Raw(Frame(1, source, 0, "a"), raw, height, width, {}, beside), output, {}


def test_the_key_decides() -> None:
    """`edges` is written down in the facts and moves the step; `none` and `size: model` leave the map as it was."""
    picture, raw = scene()

    def step(**settings: Any) -> tuple[int, Any]:
        outputs = {each.ending: each.data for each in render(*asked(picture, raw, **settings))}
        values = np.frombuffer(outputs[".npy"][128:], np.float32)
        facts = json.loads(outputs[".json"])
        return width_of_step(values.reshape(-1, 32 if settings.get("size") == "model" else 512)[10]), facts.get(
            "refine"
        )

    width, told = step(refine="edges")
    assert width <= 1
    assert told == "edges"
    width, told = step(refine="none")
    assert width > 10
    assert told is None
    assert step(refine="edges", size="model")[1] is None


def test_the_picture_is_read_whole() -> None:
    """A reader must not shrink a picture whose edges are wanted."""
    ok, data = cv2.imencode(".jpg", np.zeros((1600, 1200, 3), np.uint8))
    assert ok
    plan = depth.Plan(64, 64)
    refined = load(data.tobytes(), plan, 10**8, OutputSettings(refine="edges"))
    assert refined.aside is not None
    assert refined.aside.guide is not None
    assert refined.aside.guide.shape == (1600, 1200)
    assert load(data.tobytes(), plan, 10**8, OutputSettings()).aside is None


def test_large_pictures_need_little_beside_the_map() -> None:
    """Refining 12 megapixels holds bands, not whole pictures: less than 1.5 times the map itself is allocated."""
    import tracemalloc

    guide = np.zeros((3000, 4000), np.uint8)
    raw = np.random.default_rng(1).random((64, 64)).astype(np.float32)
    tracemalloc.start()
    try:
        depth.snapped(raw, guide)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 1.5 * guide.size * 4


# -- a shot ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    made = Life(home, tmp_path)
    made.fake = {}
    yield made
    made.bury()


def test_a_shot_is_refined_from_the_pictures_themselves(life: Life) -> None:
    """The guide is not kept on the disk: when the shot has settled, each picture is read again for its edges."""
    output = {"range": "shot", "refine": "edges", "sidecar": True}
    life.settle({"output": output}, watch={"settle_s": 0.1, "rescan_s": 0.5, "shot_settle_s": 3600})
    for number in range(3):
        picture = np.full((700, 900, 3), 30, np.uint8)
        picture[:, 411 + number :] = 220
        cv2.imwrite(str(life.inbox / f"a_{number:04}.png"), picture)
    assert life.once().returncode == 0
    for number in range(3):
        facts = json.loads((life.outbox / f"a_{number:04}_depth.json").read_bytes())
        assert facts["refine"] == "edges"
        assert facts["range"] == "shot"
        found = cv2.imread(str(life.outbox / f"a_{number:04}_depth.png"), cv2.IMREAD_UNCHANGED)
        assert found is not None
        assert abs(int(np.argmax(found[350] > 32767)) - (411 + number)) <= 1


def test_the_guide_is_not_kept() -> None:
    """A kept raw map holds no full-size picture: `limits.shot_mb` is for maps."""
    from watcher.shots.keeping import packed

    raw = Raw(
        Frame(1, Source(Path("/in"), "a_1.png", "a_1.png", Identity(1, 1)), 0, "a"),
        np.ones((8, 8), np.float32),
        2000,
        2000,
        {},
        Aside(guide=np.zeros((2000, 2000), np.uint8)),
    )
    assert len(packed(raw, np.zeros(257, np.float32), "m")) < 10_000
