"""Contact sheets: what the files hold, to be looked at. ``python -m bench.sheet`` writes docs/pictures/presets.jpg (for
each application) and docs/pictures/writers.jpg (for each format), read by the readers of ``bench.others``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bench import others, pages
from watcher import config, loader
from watcher.config import Output as OutputSettings
from watcher.config.presets import PRESETS
from watcher.frame import Frame, Identity, Raw, Source
from watcher.network import Network
from watcher.rendering import render

TILE = 200
_CAPTION = 34
Picture = NDArray[np.uint8]
EXAMPLES = Path(__file__).parents[1] / "examples" / "inbox"


def raws(names: tuple[str, ...]) -> list[tuple[Picture, Raw]]:
    """The example pictures, upright RGB, each with its raw map by the embedded network."""
    network = Network(config.load(None, {"model.name": "starter"}))
    found = []
    with network.open() as session:
        plan = network.plan(session.shape)
        for name in names:
            data = (EXAMPLES / name).read_bytes()
            loaded = loader.load(data, plan, 10**8)
            source = Source(EXAMPLES, name, name, Identity(len(data), 0))
            raw = Raw(
                Frame(1, source, 0, name), session.run(loaded.tensor), loaded.height_px, loaded.width_px, loaded.facts
            )
            shown = cv2.cvtColor(np.asarray(cv2.imread(str(EXAMPLES / name))), cv2.COLOR_BGR2RGB)
            found.append((np.asarray(shown, np.uint8), raw))
    return found


def written(raw: Raw, wishes: Mapping[str, Any]) -> tuple[Picture, str]:
    """A map as its file holds it, as (H, W) uint8 from the least to the largest value that can be stored (of float
    maps: that is stored); and what it is."""
    settings = OutputSettings(**wishes)
    output = render(raw, settings, {"model": "starter"})[0]
    fmt = settings.formats[0]
    values = others.values(output.data, fmt)
    if values.dtype.kind == "f":
        low, high = float(values.min()), float(values.max())
        what = f"{values.dtype}, channel {others.channel(output.data)}" if fmt == "exr" else str(values.dtype)
    else:
        low, high, what = 0.0, float(np.iinfo(values.dtype).max), str(values.dtype)
    return np.asarray((values.astype(np.float64) - low) / (high - low) * 255, np.uint8), f"{output.ending} {what}"


def tile(picture: Picture, title: str, text: str = "") -> Picture:
    """A square with the picture fitted into it, and two lines below."""
    high, wide = picture.shape[:2]
    scale = TILE / max(high, wide)
    size = max(1, round(wide * scale)), max(1, round(high * scale))
    small = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))
    small = small if small.ndim == 3 else np.repeat(small[..., None], 3, axis=2)
    found = np.full((TILE + _CAPTION, TILE + 8, 3), 255, np.uint8)
    found[: size[1], : size[0]] = small
    for line, words in enumerate((title, text)):
        place = (0, TILE + 13 + 15 * line)
        cv2.putText(found, words, place, cv2.FONT_HERSHEY_SIMPLEX, 0.4, (40, 40, 40), 1, cv2.LINE_AA)
    return found


def sheet(tiles: list[Picture], columns: int, path: Path) -> None:
    blank = np.full_like(tiles[0], 255)
    filled = tiles + [blank] * (-len(tiles) % columns)
    lines = [np.concatenate(filled[at : at + columns], axis=1) for at in range(0, len(filled), columns)]
    whole = cv2.cvtColor(np.concatenate(lines), cv2.COLOR_RGB2BGR)
    cv2.imwrite(str(path), whole, [cv2.IMWRITE_JPEG_QUALITY, 82])
    print(f"{path.name}: {path.stat().st_size // 1024} KB")


def main() -> None:
    (picture, raw), (second, raw_of_second) = raws(("astronaut.jpg", "coffee.jpg"))
    tiles = []
    for shown, depth in ((picture, raw), (second, raw_of_second)):
        tiles.append(tile(shown, "the picture"))
        for name, bundle in PRESETS.items():
            values, what = written(depth, bundle)
            tiles.append(tile(values, f"{name}: near {bundle['near']}", what))
    sheet(tiles, 7, pages.DOCS / "pictures" / "presets.jpg")
    tiles = [tile(second, "the picture")]
    for fmt in others.READERS:
        name, _, half = fmt.partition(" ")
        values, what = written(raw_of_second, {"format": name, "exr_type": half or "float"})
        tiles.append(tile(values, f"{fmt} by {others.READERS[fmt]}", what))
    ends = tuple(float(f"{value:.2g}") for value in np.percentile(raw_of_second.depth, (25, 75)))
    wishes: tuple[dict[str, Any], ...] = ({"near": "black"}, {"size": "model"}, {"range": ends})
    for more in wishes:
        values, what = written(raw_of_second, more)
        tiles.append(tile(values, " ".join(f"{key}: {value}" for key, value in more.items()), what))
    sheet(tiles, 7, pages.DOCS / "pictures" / "writers.jpg")


if __name__ == "__main__":
    main()
