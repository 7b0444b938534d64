"""How far the default resampling is from ``reference``, over the corpus beside the project or the examples.

``python -m bench.difference`` prints it and writes it into docs/performance.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

import cv2
import numpy as np

from bench import pages, place
from watcher import depth, imagefile
from watcher.errors import FrameError
from watcher.frame import Float32
from watcher.session import Options, open_session

PAGE = place.PROJECT / "docs" / "performance.md"
_MOST_PIXELS = 30_000_000
_EDGES = 95  # percentile of the gradient from which on a pixel counts as an edge


def sources() -> tuple[str, list[Path]]:
    corpus = place.PROJECT.parent / "shared" / "corpus" / "valid"
    if corpus.is_dir():
        return "the corpus", sorted(path for path in corpus.rglob("*") if path.is_file())
    return "the examples", sorted((place.PROJECT / "examples" / "inbox").iterdir())


def maps(paths: list[Path]) -> Iterator[tuple[str, Float32, Float32]]:
    """(name, default, reference) of every picture that can be read, 0..1, at its own size."""
    with open_session(place.PROJECT / "models" / "starter.onnx", Options(provider="cpu")) as session:
        plans = [
            depth.Plan(session.shape.height_px, session.shape.width_px, resample=resample)
            for resample in ("auto", "reference")
        ]
        for path in paths:
            made = []
            for plan in plans:
                try:
                    picture = imagefile.decode(
                        path.read_bytes(), max_pixels=_MOST_PIXELS, min_side_px=depth.min_side_px(plan)
                    )
                except FrameError:
                    break
                raw = session.run(depth.prepare(picture.pixels, plan))
                size = (picture.height_px, picture.width_px)
                made.append(depth.finish(raw, size).values.astype(np.float32) / np.float32(65535))
            if len(made) == 2:
                yield path.name, made[0], made[1]


def edges(reference: Float32) -> np.ndarray:
    """Where the reference map is steepest: (H, W) bool."""
    across, down = (cv2.Sobel(reference, cv2.CV_32F, *order) for order in ((1, 0), (0, 1)))
    steep = np.hypot(across, down)
    return np.asarray(steep >= np.percentile(steep, _EDGES))


def report() -> str:
    where, paths = sources()
    means, most, at_edges, named = [], [], [], []
    for name, default, reference in maps(paths):
        apart = np.abs(default - reference)
        means.append(float(apart.mean()))
        most.append(float(apart.max()))
        at_edges.append(float(apart[edges(reference)].mean()))
        named.append((means[-1], name))
    rows = (("mean of a map", means), ("at its edges (the steepest 5 %)", at_edges), ("largest of a map", most))
    lines = ["| difference, of the full scale | median | mean | nine of ten below | worst |", "|---|---|---|---|---|"]
    lines += [
        f"| {name} | {median(v):.2%} | {mean(v):.2%} | {float(np.percentile(v, 90)):.2%} | {max(v):.2%} |"
        for name, v in rows
    ]
    worst = ", ".join(f"`{name}` {value:.1%}" for value, name in sorted(named, reverse=True)[:3])
    about = f"{len(means)} pictures of {where}, network `starter`, maps of source size. Furthest apart, by their means:"
    return "\n".join((*lines, "", f"{about} {worst}."))


def main() -> None:
    found = report()
    print(found)
    pages.put(PAGE, "difference", found)


if __name__ == "__main__":
    main()
