"""Flicker: how far a thing that stands still moves in the maps of a shot, for each way of choosing the range.

``python -m bench.flicker`` writes the table of docs/outputs.md. Shots of 100 frames, with a patch that stands still:

``synthetic``  raw maps made here: a pan over a wide scene of walls and things at many depths. What moves in the patch
               is the range alone.
``measured``   the same pan over the measured depth of four real rooms.
``road``       a pan over a photograph of a road, a part of a room's standing still in a corner, through the embedded
               network. What moves is the range and what the network itself makes of the patch.
``road, held`` the same raw maps, the patch's raw values held: the range alone again, among real raw values.
``examples``   as ``road``, over two of the example pictures with a third one standing still.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bench import pages
from bench.refine import averaged
from training.truth import read_pair
from watcher import config, depth
from watcher.frame import Frame, Raw, Source
from watcher.inbox import identity_of
from watcher.network import Network
from watcher.rendering import Span, span_of
from watcher.shots import Shots

FRAMES = 100
SIDE_PX = 256
PATCH = (slice(16, 64), slice(16, 64))
Map = NDArray[np.float32]
Picture = NDArray[np.uint8]


def synthetic(frames: int = FRAMES) -> Iterator[Map]:
    """Raw maps (256, 256): walls between 100 and 300, things up to 1500, the patch at 600."""
    random = np.random.default_rng(6)
    wide = SIDE_PX + 8 * frames
    walls = cv2.resize(random.uniform(100, 300, (4, wide // 100)).astype(np.float32), (wide, SIDE_PX))
    for _ in range(wide // 60):
        left, top = int(random.integers(0, wide)), int(random.integers(60, SIDE_PX - 20))
        radius, near = int(random.integers(8, 60)), float(random.choice([400, 700, 1000, 1500]))
        cv2.circle(walls, (left, top), radius, near, -1)
    for number in range(frames):
        shown = walls[:, 8 * number : 8 * number + SIDE_PX].copy()
        shown[PATCH] = 600
        yield np.asarray(shown, np.float32)


def measured_rooms(frames: int = FRAMES) -> Iterator[Map]:
    """Raw maps (256, 256): inverse depth in 1/m as it was measured, the patch at 0.6."""
    names = ("diode_indoor", "nyu_00050", "sevenscenes_kitchen_000", "tum_fr3_cabinet")
    pairs = [read_pair(pages.CORPUS / "depth" / name) for name in names]
    wide = np.concatenate([averaged(pair, (SIDE_PX, pair.inverse.shape[1])) for pair in pairs], axis=1)
    for number in range(frames):
        left = number * (wide.shape[1] - SIDE_PX) // (frames - 1)
        shown = wide[:, left : left + SIDE_PX].copy()
        shown[PATCH] = 0.6
        yield np.asarray(shown, np.float32)


def over_examples(pictures: Path) -> tuple[Picture, Picture]:
    """(512, 1536, 3) and (160, 160, 3), BGR."""
    found = [cv2.imread(str(path)) for path in sorted(pictures.glob("*.jpg"))]
    tiles = [np.asarray(cv2.resize(each, (512, 512)), np.uint8) for each in found if each is not None]
    wide = np.concatenate((tiles[0], tiles[1], tiles[0][:, ::-1]), axis=1)
    return wide, np.asarray(cv2.resize(tiles[2], (160, 160)), np.uint8)


def over_road() -> tuple[Picture, Picture]:
    """The same from a photograph three times as wide as high, and one of a room."""
    road, room = (
        np.asarray(cv2.imread(str(pages.CORPUS / "depth" / name)), np.uint8)
        for name in ("kitti_005/rgb.png", "tum_fr3_cabinet/rgb.jpg")
    )
    width = road.shape[1] * 512 // road.shape[0]
    return np.asarray(cv2.resize(road, (width, 512)), np.uint8), np.asarray(
        cv2.resize(room[:, 80:560], (160, 160)), np.uint8
    )


def network(wide: Picture, still: Picture, frames: int = FRAMES) -> Iterator[Map]:
    """Raw maps of the embedded network, at its own size."""
    settings = config.load(None, {"model.name": "starter"})
    net = Network(settings)
    with net.open() as session:
        plan = net.plan(session.shape)
        for number in range(frames):
            left = number * (wide.shape[1] - 512) // (frames - 1)
            shown = wide[:, left : left + 512].copy()
            shown[:160, :160] = still
            yield session.run(depth.prepare(np.ascontiguousarray(shown[..., ::-1]), plan))


def spans(maps: list[Map], mode: str, place: Path) -> Iterator[Span]:
    """The range of each frame, as the program chooses it."""
    output = config.load(None, {"folders[0].output": {"range": _WISHES[mode]}}).folders[0].output
    shots = Shots(place / "state", "bench", 10**12)
    raws = [_raw(place, number, each) for number, each in enumerate(maps)]
    if mode == "shot":
        for raw in raws:
            shots.decide(raw, mode, place)
        shots.settle(place, "a_#.png")
    for raw in raws:
        if mode in ("shot", "shot-live"):
            made = shots.decide(raw, mode, place)
            yield Span(made.ends, made.mode)
        else:
            yield span_of(raw, output)


_WISHES: dict[str, Any] = {
    "frame": "frame",
    "percentile": {"percentile": [0.5, 99.5]},
    "shot": "shot",
    "shot-live": "shot-live",
}


def _raw(place: Path, number: int, values: Map) -> Raw:
    path = place / f"a_{number:04}.png"
    path.touch()
    source = Source(place, path.name, path.name, identity_of(path.stat()))
    return Raw(Frame(number, source, 0, path.stem), values, *values.shape)


def measured(maps: list[Map], mode: str, patch: tuple[slice, slice]) -> tuple[float, float, float]:
    """(standard deviation, range, largest step between neighbours) of the patch's mean, in shares of the scale."""
    means = []
    with tempfile.TemporaryDirectory() as place:
        for values, span in zip(maps, spans(maps, mode, Path(place)), strict=True):
            made = depth.finish(values, None, fixed_range=span.ends)
            means.append(float(made.values[patch].mean()) / 65535)
    return float(np.std(means)), float(np.ptp(means)), float(np.abs(np.diff(means)).max())


def table(name: str, maps: list[Map], patch: tuple[slice, slice]) -> Iterator[str]:
    base = None
    for mode in _WISHES:
        deviation, whole, step = measured(maps, mode, patch)
        base = base if base is not None else deviation
        yield f"| {name} | `{mode}` | {deviation:.4f} | {deviation / base:.2f} | {whole:.3f} | {step:.3f} |"


def held(maps: list[Map], patch: tuple[slice, slice]) -> list[Map]:
    """The same maps, the patch in all of them as in the first one."""
    found = [each.copy() for each in maps]
    for each in found:
        each[patch] = maps[0][patch]
    return found


def main() -> None:
    lines = [*table("synthetic", list(synthetic()), PATCH), *table("measured", list(measured_rooms()), PATCH)]
    road = list(network(*over_road()))
    side = road[0].shape[0]
    patch = (slice(side // 16, side // 4),) * 2
    lines += [*table("road, held", held(road, patch), patch), *table("road", road, patch)]
    examples = list(network(*over_examples(Path(__file__).parents[1] / "examples" / "inbox")))
    lines += table("examples", examples, patch)
    head = "sequence | range | standard deviation | against `frame` | from lowest to highest | largest step"
    text = pages.rows(head, [line.strip("| ") for line in lines])
    print(text)
    pages.put(pages.DOCS / "outputs.md", "flicker", text)


if __name__ == "__main__":
    main()
