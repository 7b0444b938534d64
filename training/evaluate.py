"""How good a network is on real pairs: ordering, delta and relative error, against the plainest guesses there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

from training.materials import Array
from training.truth import Pair, halves, read_pair

POINTS = 40_000  # pairs of points a picture
APART = 1.1  # depths that differ by less have no order
Guess = Callable[[Pair], Array]
MEASURES = ("ordinal", "delta1", "absrel")


def network(path: Path) -> Guess:
    """The guess of an ONNX file with a fixed square input ``image``, at the size of the truth."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    side = int(session.get_inputs()[0].shape[2])

    def guess(pair: Pair) -> Array:
        small = cv2.resize(pair.picture, (side, side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
        said = session.run(None, {"image": np.ascontiguousarray(small.transpose(2, 0, 1)[None])})[0][0]
        return np.asarray(cv2.resize(said, pair.inverse.shape[::-1], interpolation=cv2.INTER_LINEAR))

    return guess


def ramp(pair: Pair) -> Array:
    """Lower in the picture is nearer."""
    high, wide = pair.inverse.shape
    return np.tile(np.linspace(0, 1, high, dtype=np.float32)[:, None], (1, wide))


def constant(pair: Pair) -> Array:
    """Everything is equally far."""
    return np.zeros_like(pair.inverse)


def measures(said: Array, pair: Pair) -> dict[str, float]:
    """``ordinal`` share of point pairs in the right order (a tie counts half); for metric pairs ``delta1``, ``absrel``.

    Scale (0 or more) and shift are fitted by least squares in inverse depth, as MiDaS is measured (Ranftl et al. 2020).
    """
    p, g = said[pair.known].astype(np.float64), pair.inverse[pair.known].astype(np.float64)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(p), (2, POINTS))
    apart = np.abs(np.log(g[a] / g[b])) > np.log(APART)
    agree = np.sign(p[a] - p[b])[apart] * np.sign(g[a] - g[b])[apart]
    found = {"ordinal": float((agree + 1).mean() / 2), "delta1": np.nan, "absrel": np.nan}
    if pair.metric:
        scale, shift = np.linalg.lstsq(np.stack([p, np.ones_like(p)], 1), g, rcond=None)[0]
        fitted = scale * p + shift if scale > 0 else np.full_like(p, g.mean())
        fitted = np.maximum(fitted, 0.7 * np.percentile(g, 1))
        found["delta1"] = float((np.maximum(fitted / g, g / fitted) < 1.25).mean())
        found["absrel"] = float(np.abs(g / fitted - 1).mean())
    return found


def interval(values: Array) -> str:
    """Mean and 95 % of 2000 bootstrap means over pictures."""
    values = values[np.isfinite(values)]
    drawn = np.random.default_rng(0).choice(values, (2000, len(values))).mean(1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{values.mean():.3f} ({low:.3f} .. {high:.3f})"


def table(corpus: Path, half: str, networks: dict[str, Path]) -> str:
    """A Markdown table of all guesses on one half, then one of the ordering per picture."""
    pairs = [read_pair(corpus / name) for name in halves()[half]]
    guesses: dict[str, Guess] = {name: network(path) for name, path in networks.items()}
    guesses |= {"ramp": ramp, "constant": constant}
    found = {name: [measures(guess(pair), pair) for pair in pairs] for name, guess in guesses.items()}
    lines = [f"| {half}, {len(pairs)} pairs | {' | '.join(MEASURES)} | above the ramp |", "|---" * 5 + "|"]
    for name, rows in found.items():
        cells = [interval(np.array([row[m] for row in rows])) for m in MEASURES]
        above = sum(r["ordinal"] > s["ordinal"] for r, s in zip(rows, found["ramp"], strict=True))
        lines.append(f"| {name} | {' | '.join(cells)} | {above} of {len(pairs)} |")
    lines += ["", f"| ordinal | {' | '.join(found)} |", "|---" * (1 + len(found)) + "|"]
    for index, pair in enumerate(pairs):
        cells = [f"{rows[index]['ordinal']:.3f}" for rows in found.values()]
        lines.append(f"| {pair.name} | {' | '.join(cells)} |")
    return "\n".join(lines)
