"""Ways to draw a small map's edges again after the picture, and what the truth says of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from training.evaluate import Guess, column, enlarged, look, ramp, shrunk
from training.materials import Array
from training.measures import interval
from training.truth import Pair

Sharpener = Callable[[Array, Array], Array]  # a small map (s, s), a picture (h, w, 3) 0..1 -> a map (h, w)


def linear(small: Array, picture: Array) -> Array:
    """Linear interpolation: what every other number is measured with."""
    return np.asarray(cv2.resize(small, picture.shape[1::-1], interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def cubic(small: Array, picture: Array) -> Array:
    """Cubic interpolation: what the program does."""
    return np.asarray(cv2.resize(small, picture.shape[1::-1], interpolation=cv2.INTER_CUBIC), dtype=np.float32)


def guided(small: Array, picture: Array, radius: int, even: float) -> Array:
    """Guided filter (He et al. 2010) with the grey picture: in each window the map is a line over the grey value.

    ``radius`` in px of the picture; ``even`` is the variance of grey (0..1) below which a window counts as smooth.
    """
    grey = np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    rough = linear(small, picture)

    def mean(values: NDArray[np.floating]) -> Array:
        window = (2 * radius + 1, 2 * radius + 1)
        return np.asarray(cv2.blur(values, window, borderType=cv2.BORDER_REFLECT), dtype=np.float32)

    middle, level = mean(grey), mean(rough)
    slope = (mean(grey * rough) - middle * level) / (mean(grey * grey) - middle * middle + np.float32(even))
    return mean(slope) * grey + mean(level - slope * middle)


def bilateral(small: Array, picture: Array, reach: float, alike: float) -> Array:
    """Joint bilateral upsampling (Kopf et al. 2007): map values near by count as far as their colour is alike.

    ``reach`` is the spread in px of the small map, ``alike`` that of the colour distance (0..1).
    """
    side, (high, wide) = small.shape[0], picture.shape[:2]
    seen = np.asarray(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA))
    rows = np.clip((np.arange(high) + 0.5) * side / high - 0.5, 0, side - 1)[:, None]
    columns = np.clip((np.arange(wide) + 0.5) * side / wide - 0.5, 0, side - 1)[None]
    total, weights = np.zeros((high, wide), np.float32), np.full((high, wide), 1e-6, np.float32)
    steps = range(-int(2 * reach), int(2 * reach) + 1)
    for down in steps:
        for across in steps:
            y, x = (np.clip(np.round(at).astype(int) + by, 0, side - 1) for at, by in ((rows, down), (columns, across)))
            far = ((y - rows) ** 2 + (x - columns) ** 2) / (2 * reach * reach)
            unlike = ((picture - seen[y, x]) ** 2).sum(-1) / (2 * alike * alike)
            weight = np.exp(-far - unlike).astype(np.float32)
            total += weight * small[y, x]
            weights += weight
    return total / weights


WAYS: dict[str, Sharpener] = {
    "linear": linear,
    "cubic": cubic,
    "guided, 4 px, 0.001": partial(guided, radius=4, even=1e-3),
    "guided, 8 px, 0.001": partial(guided, radius=8, even=1e-3),
    "guided, 8 px, 0.01": partial(guided, radius=8, even=1e-2),
    "guided, 16 px, 0.001": partial(guided, radius=16, even=1e-3),
    "joint bilateral, 1 px, 0.1": partial(bilateral, reach=1.0, alike=0.1),
    "joint bilateral, 2 px, 0.1": partial(bilateral, reach=2.0, alike=0.1),
    "joint bilateral, 2 px, 0.05": partial(bilateral, reach=2.0, alike=0.05),
}


def sharpened(path: Path, way: Sharpener) -> Guess:
    """The guess of an ONNX file, enlarged one way."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    side = int(session.get_inputs()[0].shape[2])

    def guess(pair: Pair) -> Array:
        small = np.asarray(session.run(None, {"image": shrunk(pair, side)})[0][0], dtype=np.float32)
        picture = cv2.resize(pair.picture, pair.inverse.shape[::-1], interpolation=cv2.INTER_AREA)
        return way(small, np.asarray(picture, dtype=np.float32) / np.float32(255))

    return guess


def perfect(pair: Pair) -> Array:
    """The truth itself as a map of 128 by 128, unknown parts filled up: the most that a map of this size can tell."""
    filled = pair.inverse.copy()
    holes = (~pair.known).astype(np.uint8)
    scale = float(filled.max())
    levels = np.asarray(cv2.inpaint((filled / scale * 65535).astype(np.uint16), holes, 3, cv2.INPAINT_NS), np.float32)
    small = cv2.resize(levels * scale / 65535, (128, 128), interpolation=cv2.INTER_AREA)
    return enlarged(np.asarray(small), pair)


def edge_table(title: str, path: Path, pairs: list[Pair]) -> str:
    """A Markdown table of every way, of a perfect map of 128 by 128, and of the ramp."""
    guesses = {name: sharpened(path, way) for name, way in WAYS.items()} | {"perfect, 128 px": perfect, "ramp": ramp}
    said = ("ordinal", "edge F1", "edge error")
    lines = [f"| {title}, {len(pairs)} pairs | {' | '.join(said)} |", "|---" * (1 + len(said)) + "|"]
    for name, rows in look(pairs, guesses).items():
        lines.append(f"| {name} | {' | '.join(interval(column(rows, measure)) for measure in said)} |")
    return "\n".join(lines)
