"""The pictures of the documentation that show what the embedded network makes of the examples."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from watcher import config, depth, imagefile
from watcher.network import Network

PROJECT = Path(__file__).parents[1]
EXAMPLES, TARGET = PROJECT / "examples" / "inbox", PROJECT / "docs" / "pictures"
HIGH, GAP, QUALITY = 300, 10, 90
Tile = np.ndarray  # (h, w, 3) uint8 RGB


def maps(names: list[str]) -> dict[str, tuple[Tile, np.ndarray]]:
    """Picture (h, w, 3) uint8 and map (h, w) uint16, near is white, of each example, as the program makes them."""
    network, found = Network(config.load(None, {"model.name": "starter"})), {}
    with network.open() as session:
        plan = network.plan(session.shape)
        for name in names:
            picture = imagefile.decode((EXAMPLES / name).read_bytes(), max_pixels=50_000_000).pixels
            made = depth.finish(session.run(depth.prepare(picture, plan)), picture.shape[:2])
            found[name] = (picture, made.values)
    return found


def draw(target: Path = TARGET) -> list[Path]:
    """Draw both pictures anew and return their paths."""
    found = maps(["photographer.jpg", "coffee.jpg", "astronaut.jpg"])
    strip = [part for name in ("photographer.jpg", "coffee.jpg") for part in _pair(*found[name])]
    gap = np.full((HIGH, GAP, 3), 255, np.uint8)
    joined = [piece for part in strip for piece in (part, gap)][:-1]
    picture, made = found["astronaut.jpg"]
    tiles = {"the picture": picture, "near: white": _gray(made), "near: black": _gray(65535 - made)}
    for colours in ("inferno", "turbo", "magma"):
        decoded = imagefile.decode(imagefile.preview(made, colours), max_pixels=50_000_000)
        tiles[f"preview: {colours}"] = decoded.pixels
    titled = [_titled(tile, title) for title, tile in tiles.items()]
    grid = np.vstack([np.hstack(titled[:3]), np.hstack(titled[3:])])
    written = []
    for name, whole in (("picture-and-map.jpg", np.hstack(joined)), ("outputs.jpg", grid)):
        quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
        cv2.imwrite(str(target / name), np.ascontiguousarray(whole[..., ::-1]), quality)
        written.append(target / name)
    return written


def _gray(values: np.ndarray) -> Tile:
    return np.repeat((values >> 8).astype(np.uint8)[..., None], 3, -1)


def _pair(picture: Tile, made: np.ndarray) -> list[Tile]:
    """Picture and map, as high as the strip."""
    size = (round(picture.shape[1] * HIGH / picture.shape[0]), HIGH)
    return [np.asarray(cv2.resize(side, size, interpolation=cv2.INTER_AREA)) for side in (picture, _gray(made))]


def _titled(tile: Tile, title: str) -> Tile:
    """The tile, 300 px a side, over its title."""
    small = cv2.resize(tile, (HIGH, HIGH), interpolation=cv2.INTER_AREA)
    line = np.full((22, HIGH, 3), 245, np.uint8)
    cv2.putText(line, title, (4, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (20, 20, 20), 1, cv2.LINE_AA)
    return np.vstack([small, line])
