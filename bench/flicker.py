"""Flicker: how far a thing that stands still moves in the maps of a shot, for each way of choosing the range.

``python -m bench.flicker`` prints a table. Two shots of 100 frames:

``synthetic``  raw maps made here: a pan over a wide scene of walls and things at many depths, with a static patch in
               one corner. What moves in it is the range alone.
``network``    a pan over two of the example pictures with a third one standing still in a corner, through the embedded
               network. What moves is the range and what the network itself makes of the patch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

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


def network(pictures: Path, frames: int = FRAMES) -> Iterator[Map]:
    """Raw maps of the embedded network, at its own size."""
    found = [cv2.imread(str(path)) for path in sorted(pictures.glob("*.jpg"))]
    tiles = [np.asarray(cv2.resize(each, (512, 512)), np.uint8) for each in found if each is not None]
    wide = np.concatenate((tiles[0], tiles[1], tiles[0][:, ::-1]), axis=1)
    still = np.asarray(cv2.resize(tiles[2], (160, 160)), np.uint8)
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


def main(say: Callable[[str], None] = print) -> None:
    say("| sequence | range | standard deviation | against `frame` | from lowest to highest | largest step |")
    say("|---|---|---|---|---|---|")
    for line in table("synthetic", list(synthetic()), PATCH):
        say(line)
    seen = list(network(Path(__file__).parents[1] / "examples" / "inbox"))
    side = seen[0].shape[0]
    inner = slice(side // 16, side // 4)
    for line in table("network", seen, (inner, inner)):
        say(line)


if __name__ == "__main__":
    main()
