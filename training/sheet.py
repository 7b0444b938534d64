"""A contact sheet: photographs beside what networks say of them, to be looked at."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from training.evaluate import network
from training.materials import Array
from training.photos import fetched, photos, read_photo
from training.truth import Pair

TILE, CELLS = 190, 3  # px a picture; photographs in a row


def sheet(place: Path, networks: dict[str, Path], target: Path) -> int:
    """Write the sheet to ``target`` and return how many photographs it shows; each with one map a network."""
    guesses = {name: network(path) for name, path in networks.items()}
    folders = fetched(place)
    cells = []
    for photo in photos():
        if photo.source not in folders or not (path := folders[photo.source] / photo.file).exists():
            print(f"not shown, since it cannot be had here: {photo.file} of {photo.source}")
            continue
        picture = read_photo(path)
        shown = Pair(photo.file, picture, *_blank(picture), False, photo.source)
        tiles = [_titled(_fitted(picture[..., ::-1]), photo.file + (" *" if photo.subject else ""))]
        tiles += [_titled(_fitted(coloured(guess(shown))), name) for name, guess in guesses.items()]
        cells.append(np.hstack(tiles))
    cells += [np.zeros_like(cells[0])] * (-len(cells) % CELLS)
    rows = [np.hstack(cells[index : index + CELLS]) for index in range(0, len(cells), CELLS)]
    target.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(target), np.vstack(rows))
    return sum(bool(cell.any()) for cell in cells)


def coloured(said: Array) -> np.ndarray:
    """A map (h, w) as BGR (h, w, 3) uint8: dark blue is far, yellow is near, from its second to its 98th percentile."""
    low, high = np.percentile(said, [2, 98])
    grey = np.clip((said - low) / max(high - low, 1e-6), 0, 1)
    return np.asarray(cv2.applyColorMap((grey * 255).astype(np.uint8), cv2.COLORMAP_INFERNO))


def _blank(picture: np.ndarray) -> tuple[Array, np.ndarray]:
    """What a photograph has instead of a truth, at its own size."""
    return np.zeros(picture.shape[:2], np.float32), np.zeros(picture.shape[:2], np.bool_)


def _fitted(bgr: np.ndarray) -> np.ndarray:
    """The picture in the middle of a square tile, its aspect kept."""
    high, wide = bgr.shape[:2]
    scale = (TILE - 4) / max(high, wide)
    small = cv2.resize(bgr, (round(wide * scale), round(high * scale)), interpolation=cv2.INTER_AREA)
    tile = np.full((TILE, TILE, 3), 32, np.uint8)
    top, left = (TILE - small.shape[0]) // 2, (TILE - small.shape[1]) // 2
    tile[top : top + small.shape[0], left : left + small.shape[1]] = small
    return tile


def _titled(tile: np.ndarray, title: str) -> np.ndarray:
    for colour, thick in ((0, 3), (255, 1)):
        cv2.putText(tile, title[:26], (4, 14), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (colour,) * 3, thick, cv2.LINE_AA)
    return tile
