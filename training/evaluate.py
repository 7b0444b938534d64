"""How good a network is on pairs of picture and depth, real or rendered, against the plainest guesses there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

from training.materials import Array
from training.measures import MEASURES, interval, measures
from training.seen import seen, share_lifted
from training.truth import Pair

Guess = Callable[[Pair], Array]
Found = dict[str, list[dict[str, float]]]  # guess -> one dictionary of measures a pair


def network(path: Path) -> Guess:
    """The guess of an ONNX file with a fixed square input ``image``, at the size of the truth."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    side = int(session.get_inputs()[0].shape[2])

    def guess(pair: Pair) -> Array:
        said = session.run(None, {"image": shrunk(pair, side)})[0][0]
        return enlarged(np.asarray(said, dtype=np.float32), pair)

    return guess


def shrunk(pair: Pair, side: int) -> Array:
    """The picture as a network sees it, (1, 3, side, side) float32, 0..1."""
    small = cv2.resize(pair.picture, (side, side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    return np.ascontiguousarray(small.transpose(2, 0, 1)[None])


def enlarged(said: Array, pair: Pair) -> Array:
    """A map at the size of the truth."""
    return np.asarray(cv2.resize(said, pair.inverse.shape[::-1], interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def ramp(pair: Pair) -> Array:
    """Lower in the picture is nearer."""
    high, wide = pair.inverse.shape
    return np.tile(np.linspace(0, 1, high, dtype=np.float32)[:, None], (1, wide))


def constant(pair: Pair) -> Array:
    """Everything is equally far."""
    return np.zeros_like(pair.inverse)


def perfect(pair: Pair) -> Array:
    """The truth itself as a map of 128 by 128: the most that a map of this size can tell.

    What is unknown is taken from the nearest known pixel.
    """
    unknown = (~pair.known).astype(np.uint8)
    _, label = cv2.distanceTransformWithLabels(unknown, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    value = np.zeros(int(label.max()) + 1, np.float32)
    value[label[pair.known]] = pair.inverse[pair.known]
    return enlarged(np.asarray(cv2.resize(value[label], (128, 128), interpolation=cv2.INTER_AREA)), pair)


PLAIN: dict[str, Guess] = {"ramp": ramp, "constant": constant}
BEST: dict[str, Guess] = {"perfect at 128 px": perfect}
NO_NETWORK = {**PLAIN, **BEST}


def look(pairs: list[Pair], guesses: dict[str, Guess]) -> Found:
    """All measures of all guesses."""
    return {name: [measures(guess(pair), pair) for pair in pairs] for name, guess in guesses.items()}


def column(rows: list[dict[str, float]], measure: str) -> Array:
    """One measure of all pairs, (n,) float32."""
    return np.array([row[measure] for row in rows], dtype=np.float32)


def whole_table(title: str, pairs: list[Pair], found: Found) -> str:
    """A Markdown table: each guess, its measures with intervals, and how it stands to the ramp picture by picture.

    Last the difference of each network to the ramp, whose interval is narrower than theirs: the pictures are the same.
    """
    lines = [f"| {title}, {len(pairs)} pairs | {' | '.join(MEASURES)} | above the ramp | worst to the ramp |"]
    lines.append("|---" * (3 + len(MEASURES)) + "|")
    for name, rows in found.items():
        gap = column(rows, "ordinal") - column(found["ramp"], "ordinal")
        cells = [interval(column(rows, m)) for m in MEASURES]
        stands = f"{int((gap > 0).sum())} of {len(pairs)} | {np.nanmin(gap):+.3f}" if name not in NO_NETWORK else " | "
        lines.append(f"| {name} | {' | '.join(cells)} | {stands} |")
    for name in (name for name in found if name not in NO_NETWORK):
        cells = [interval(column(found[name], m) - column(found["ramp"], m)) for m in MEASURES]
        lines.append(f"| {name} less ramp | {' | '.join(cells)} | | |")
    return "\n".join(lines)


def family_table(pairs: list[Pair], found: Found) -> str:
    """A Markdown table of ordinal and delta1 of each guess for each family of pictures."""
    lines = [f"| family | pairs | {' | '.join(f'{name}: ordinal | delta1' for name in found)} |"]
    lines.append("|---" * (2 + 2 * len(found)) + "|")
    for family in sorted({pair.family for pair in pairs}):
        mine = [index for index, pair in enumerate(pairs) if pair.family == family]
        cells = [interval(column(rows, m)[mine]) for rows in found.values() for m in ("ordinal", "delta1")]
        lines.append(f"| {family} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def picture_table(pairs: list[Pair], found: Found) -> str:
    """A Markdown table of the ordering in each picture."""
    lines = [f"| ordinal | {' | '.join(found)} |", "|---" * (1 + len(found)) + "|"]
    for index, pair in enumerate(pairs):
        cells = [f"{rows[index]['ordinal']:.3f}" for rows in found.values()]
        lines.append(f"| {pair.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


GATE = {"ordinal": 0.82, "above the ramp": 0.65, "delta1": 0.70, "worst to the ramp": -0.1, "subjects lifted off": 0.7}


def gate(rows: list[dict[str, float]], ramps: list[dict[str, float]], lifted: float) -> str:
    """A Markdown table: what a network shall reach, what it reaches, and by how much it misses.

    ``lifted`` is the share of the subjects of the contact sheet that stand out by eye, nan where nobody has looked.
    """
    gap = column(rows, "ordinal") - column(ramps, "ordinal")
    reached = {
        "ordinal": np.nanmean(column(rows, "ordinal")),
        "above the ramp": (gap > 0).mean(),
        "delta1": np.nanmean(column(rows, "delta1")),
        "worst to the ramp": np.nanmin(gap),
        "subjects lifted off": lifted,
    }
    lines = ["| gate | at least | reached | |", "|---" * 4 + "|"]
    for name, least in GATE.items():
        short = least - reached[name]
        told = "not known" if np.isnan(short) else "reached" if short <= 0 else f"missed by {short:.3f}"
        lines.append(f"| {name} | {least} | {reached[name]:.3f} | {told} |")
    return "\n".join(lines)


def report(half: str, real: list[Pair], made: dict[str, list[Pair]], networks: dict[str, Path]) -> str:
    """All tables: the real pairs of ``half`` as a whole, by family and by picture, the gate, then the rendered ones.

    A network that is much better on rendered pairs that it learnt from than on others has learnt them by heart.
    """
    guesses = {name: network(path) for name, path in networks.items()} | PLAIN
    parts = []
    if real:
        found = look(real, guesses)
        whole = found | look(real, BEST)
        parts += [whole_table(half, real, whole), family_table(real, found), picture_table(real, found)]
        for name, path in networks.items():
            parts.append(f"{name}: {seen(path)}\n\n{gate(found[name], found['ramp'], share_lifted(path))}")
    for title, pairs in made.items():
        if pairs:
            found = look(pairs, guesses)
            parts += [whole_table(title, pairs, found), family_table(pairs, found)]
    return "\n\n".join(parts)
