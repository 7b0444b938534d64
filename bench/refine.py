"""Refining: what `refine: edges` and its rivals do to the maps of pictures whose depth was measured.

``python -m bench.refine`` writes the table of docs/outputs.md. The pairs are the selection half of
``training/split.toml``; the test half is not looked at. Two raw maps for each: that of the embedded network, and the
measured depth itself averaged to the network's size, which shows what the enlarging alone does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bench import pages
from training.measures import measures
from training.truth import Pair, halves, read_pair
from watcher import config, depth
from watcher.network import Network

Map = NDArray[np.float32]
Picture = NDArray[np.uint8]
Enlarge = Callable[[Map, Picture], Map]

STEP = 1.1  # neighbours whose measured depths differ by more are a step
AROUND_PX = 4
_RADIUS, _SMOOTH = 2, 1e-3


def cubic(raw: Map, picture: Picture) -> Map:
    return np.asarray(cv2.resize(raw, picture.shape[1::-1], interpolation=cv2.INTER_CUBIC), np.float32)


def edges(raw: Map, picture: Picture) -> Map:
    return depth.snapped(raw, depth.guide_of(picture))[0]


def guided(raw: Map, picture: Picture) -> Map:
    """The fast guided filter (He and Sun, arXiv 1505.00996, 2015): fitted at the small size, used at the large."""
    light = depth.guide_of(picture).astype(np.float32) / 255
    low, span = float(raw.min()), float(np.ptp(raw)) or 1.0
    share = (raw - low) / span
    small = np.asarray(cv2.resize(light, raw.shape[::-1], interpolation=cv2.INTER_AREA), np.float32)

    def mean(values: NDArray[np.floating[Any]]) -> Map:
        return np.asarray(cv2.blur(values, (2 * _RADIUS + 1,) * 2), np.float32)

    slope = (mean(small * share) - mean(small) * mean(share)) / (mean(small * small) - mean(small) ** 2 + _SMOOTH)
    shift = mean(share) - slope * mean(small)
    size = picture.shape[1::-1]
    large = cv2.resize(mean(slope), size) * light + cv2.resize(mean(shift), size)
    return np.asarray(large * span + low, np.float32)


WAYS: dict[str, Enlarge] = {"cubic (`none`)": cubic, "joint bilateral (`edges`)": edges, "guided filter": guided}


def near_steps(pair: Pair) -> NDArray[np.bool_]:
    """(H, W): known pixels within 4 of a step of the measured depth."""
    values = np.log(np.maximum(pair.inverse, 1e-9))
    found = np.zeros(pair.known.shape, bool)
    for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        step = (np.abs(values[one] - values[other]) > np.log(STEP)) & pair.known[one] & pair.known[other]
        found[one] |= step
        found[other] |= step
    wide = cv2.dilate(found.astype(np.uint8), np.ones((2 * AROUND_PX + 1,) * 2, np.uint8))
    return np.asarray(np.asarray(wide, bool) & pair.known)


def scores(said: Map, pair: Pair) -> tuple[float, float, float, float]:
    """(error at steps, error, ordinal, delta1); errors are mean absolute ones in shares of the mean inverse depth,
    after scale and shift are fitted by least squares."""
    p, g = said[pair.known].astype(np.float64), pair.inverse[pair.known].astype(np.float64)
    scale, shift = np.linalg.lstsq(np.stack([p, np.ones_like(p)], 1), g, rcond=None)[0]
    error = np.abs(scale * said + shift - pair.inverse) / g.mean()
    told = measures(said, pair)
    return float(error[near_steps(pair)].mean()), float(error[pair.known].mean()), told["ordinal"], told["delta1"]


def averaged(pair: Pair, size: tuple[int, int]) -> Map:
    """The measured depth at the network's size; what was not measured is taken from its nearest neighbour."""
    unknown = (~pair.known).astype(np.uint8)
    _, label = cv2.distanceTransformWithLabels(unknown, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    value = np.zeros(int(label.max()) + 1, np.float32)
    value[label[pair.known]] = pair.inverse[pair.known]
    return np.asarray(cv2.resize(value[label], size[::-1], interpolation=cv2.INTER_AREA), np.float32)


def table() -> str:
    pairs = [read_pair(pages.CORPUS / "depth" / name, whole=True) for name in halves()["selection"]]
    settings = config.load(None, {"model.name": "starter"})
    network = Network(settings)
    with network.open() as session:
        plan = network.plan(session.shape)
        raws = [session.run(depth.prepare(pair.picture, plan)) for pair in pairs]
    small = [averaged(pair, raw.shape[:2]) for pair, raw in zip(pairs, raws, strict=True)]
    lines = []
    for source, maps in (("`starter`", raws), ("measured depth", small)):
        for name, way in WAYS.items():
            told = np.array([scores(way(raw, pair.picture), pair) for raw, pair in zip(maps, pairs, strict=True)])
            lines.append(" | ".join([source, name, *(f"{value:.4f}" for value in np.nanmean(told, axis=0))]))
    head = "raw map | enlarged by | error at steps | error | ordinal | δ1"
    height, width = raws[0].shape
    return f"{pages.rows(head, lines)}\n\nRaw maps of {width} x {height}, {len(pairs)} pairs; {_pace()}."


def _pace() -> str:
    """How long 12 megapixels take."""
    guide = np.random.default_rng(0).integers(0, 256, (3000, 4000)).astype(np.uint8)
    raw = np.random.default_rng(1).random((256, 256)).astype(np.float32)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        depth.snapped(raw, guide)
        took.append(time.perf_counter() - began)
    return f"`edges` takes {min(took):.1f} s for 12 megapixels on one core of a busy machine"


def main() -> None:
    text = table()
    print(text)
    pages.put(pages.DOCS / "outputs.md", "refine", text)


if __name__ == "__main__":
    main()
