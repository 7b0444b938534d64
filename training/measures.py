"""What is measured on one pair: ordering, error after the best scale and shift, and what becomes of its edges."""

from __future__ import annotations

import cv2
import numpy as np

from training.materials import Array
from training.truth import Pair

POINTS = 40_000  # pairs of points a picture
APART = 1.1  # depths that differ by less have no order
REACH = 4  # px between the two points that a step is looked for in: two pixels of a map of 128
STEP = 1.25  # points so close whose depths differ by more have an edge of the truth between them
STEPS = np.linspace(1.05, 1.25, 10)  # that make an edge for F1, from the faint to the plain
BAND = 4  # px beside an edge of the truth where the edge error is taken
ENOUGH = 60  # edges in a truth; with fewer nothing is said of them
MEASURES = ("ordinal", "delta1", "absrel", "edge F1", "edge error")


def measures(said: Array, pair: Pair) -> dict[str, float]:
    """All of ``MEASURES`` for a map ``said`` (h, w) of one pair, nan where the truth cannot tell.

    ``ordinal``: share of pairs of points in the right order, a tie counts half. ``delta1``: share whose fitted depth is
    within 1.25 of the truth; ``absrel``: mean relative error of depth; both only where the truth is metric.
    ``edge F1`` and ``edge error``: see :func:`edges`.
    """
    p, g = said[pair.known].astype(np.float64), pair.inverse[pair.known].astype(np.float64)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(p), (2, POINTS))
    apart = np.abs(np.log(g[a] / g[b])) > np.log(APART)
    agree = np.sign(p[a] - p[b])[apart] * np.sign(g[a] - g[b])[apart]
    found = dict.fromkeys(MEASURES, np.nan) | {"ordinal": float((agree + 1).mean() / 2) if apart.any() else np.nan}
    fitted = fit(said, pair)
    if pair.metric:
        f = fitted[pair.known]
        found["delta1"] = float((np.maximum(f / g, g / f) < 1.25).mean())
        found["absrel"] = float(np.abs(g / f - 1).mean())
    return found | edges(fitted, pair)


def fit(said: Array, pair: Pair) -> Array:
    """``said`` (h, w) in the unit of the truth, positive everywhere.

    Scale (0 or more) and shift are fitted by least squares in inverse depth, as MiDaS is measured (Ranftl et al. 2020).
    """
    p, g = said[pair.known].astype(np.float64), pair.inverse[pair.known].astype(np.float64)
    scale, shift = np.linalg.lstsq(np.stack([p, np.ones_like(p)], 1), g, rcond=None)[0]
    whole = scale * said + shift if scale > 0 else np.full_like(said, g.mean())
    return np.asarray(np.maximum(whole, 0.7 * np.percentile(g, 1)), dtype=np.float32)


def edges(fitted: Array, pair: Pair) -> dict[str, float]:
    """``edge F1``: are there steps in depth where the truth has them, in its direction, and nowhere else.
    ``edge error``: mean relative error of depth within 4 px of a plain step of the truth.

    F1 as in Depth Pro (Bochkovskii et al. 2024, section 4): a step is a ratio of depths above t; ten t between 1.05 and
    1.25 are averaged, weighted by t. There the two points are neighbours; here they are 4 px apart, since no map of 128
    by 128 has a step from one pixel of the truth to the next. Nan where the truth has fewer than 60 plain steps.
    """
    nothing = {"edge F1": np.nan, "edge error": np.nan}
    truth, said = _ratios(pair.inverse, pair.known), _ratios(fitted, pair.known)
    plain = [np.abs(t) > np.log(STEP) for t in truth]
    if sum(int(part.sum()) for part in plain) < ENOUGH:
        return nothing
    scores, weights = [], []
    for step in np.log(STEPS):
        right = claimed = real = 0
        for t, s in zip(truth, said, strict=True):
            right += int((((t > step) & (s > step)) | ((t < -step) & (s < -step))).sum())
            claimed, real = claimed + int((np.abs(s) > step).sum()), real + int((np.abs(t) > step).sum())
        scores.append(2 * right / max(claimed + real, 1))
        weights.append(np.exp(step))
    at, middle = np.zeros(pair.inverse.shape, dtype=np.uint8), REACH // 2
    at[:, middle : middle - REACH] |= plain[0]
    at[middle : middle - REACH] |= plain[1]
    near = (cv2.dilate(at, np.ones((2 * BAND + 1,) * 2, np.uint8)) > 0) & pair.known
    error = np.abs(pair.inverse[near] / fitted[near] - 1).mean()
    return {"edge F1": float(np.average(scores, weights=weights)), "edge error": float(error)}


def _ratios(inverse: Array, known: np.ndarray) -> tuple[Array, Array]:
    """Logarithms of the ratios of points 4 px apart, across (h, w - 4) and down (h - 4, w); 0 where one is unknown."""
    log = np.log(np.where(known, np.maximum(inverse, 1e-6), 1))
    across, down = log[:, REACH:] - log[:, :-REACH], log[REACH:] - log[:-REACH]
    return across * (known[:, REACH:] & known[:, :-REACH]), down * (known[REACH:] & known[:-REACH])


def interval(values: Array) -> str:
    """Mean and 95 % of 2000 bootstrap means over pictures; the mean alone for fewer than three, a dash for none."""
    values = values[np.isfinite(values)]
    if len(values) < 3:
        return f"{values.mean():.3f}" if len(values) else "-"
    drawn = np.random.default_rng(0).choice(values, (2000, len(values))).mean(1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{values.mean():.3f} ({low:.3f} .. {high:.3f})"
