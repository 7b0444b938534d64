"""Rendered scenes on disk: shards of 250, each from its own seed, so that rendering can end and go on anywhere."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from training.materials import Array, Richer, Rng
from training.render import SIDE, render
from training.tones import other_tones

SCENES = 250  # in a shard
RICHER = 30  # scenes of shards from here on are full of things (training.clutter)
HELD_OUT = 1_000_000  # seeds from here on are for measuring only


def wait_while(pause: Path | None) -> None:
    """Return at once, or as soon as the file ``pause`` is gone."""
    while pause is not None and pause.exists():
        time.sleep(2)


def write_shard(folder: Path, pause: Path | None, number: int) -> Path:
    """Render shard ``number`` unless it is there already; a shard is whole or absent."""
    target = folder / f"{number:07d}.npz"
    if target.exists():
        return target
    cv2.setNumThreads(1)
    pictures = np.empty((SCENES, SIDE, SIDE, 3), dtype=np.uint8)
    truths = np.empty((SCENES, SIDE, SIDE), dtype=np.float16)
    families = []
    for index in range(SCENES):
        wait_while(pause)
        attempt = 0
        while True:
            seed = np.random.PCG64([number, index, attempt])
            plain = number < RICHER or number >= HELD_OUT
            picture, truth, family = render(np.random.Generator(seed) if plain else Richer(seed))
            if picture.std() > 6 and truth.std(dtype=np.float32) > 0.01 * truth.max():
                break
            attempt += 1
        pictures[index], truths[index] = picture, truth
        families.append(family)
    folder.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part.npz")
    np.savez(part, pictures=pictures, truths=truths, families=np.array(families))
    os.replace(part, target)
    return target


def write_shards(folder: Path, count: int, processes: int, pause: Path | None) -> None:
    """Render ``count`` shards to learn from and one to measure on; about 150 ms a scene on one core."""
    numbers = [HELD_OUT, *range(count)]
    with ProcessPoolExecutor(processes) as pool:
        for done, path in enumerate(pool.map(partial(write_shard, folder, pause), numbers), 1):
            print(f"rendered {path.name} ({done} of {len(numbers)})", flush=True)


def read_shards(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, 144, 144, 3) uint8 and inverse depths (n, 144, 144) float16 of all shards to learn from."""
    paths = [path for path in sorted(folder.glob("[0-9]*[0-9].npz")) if int(path.stem) < HELD_OUT]
    if not paths:
        raise SystemExit(f"no rendered scenes in {folder}: run `python -m training render` first")
    loaded = [np.load(path) for path in paths]
    return np.concatenate([one["pictures"] for one in loaded]), np.concatenate([one["truths"] for one in loaded])


def read_shard(folder: Path, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pictures, inverse depths and families of one shard; empty where it is not rendered."""
    path = folder / f"{number:07d}.npz"
    if not path.exists():
        return np.empty((0, SIDE, SIDE, 3), np.uint8), np.empty((0, SIDE, SIDE), np.float16), np.empty(0, np.str_)
    kept = np.load(path)
    return kept["pictures"], kept["truths"], kept["families"]


def presentation(rng: Rng, picture: np.ndarray, truth: np.ndarray, side: int) -> tuple[Array, Array]:
    """One showing: a random crop, mirrored or not, other tones. Picture (3, side, side) 0..1, truth (side, side).

    Crops move the horizon, which weakens the shortcut from position to depth. The truth becomes 0 at its second and 1
    at its 99th percentile, which is what the network shall say.
    """
    high, wide = (int(SIDE * rng.uniform(0.65, 1)) for _ in range(2))
    top, left = int(rng.integers(SIDE - high + 1)), int(rng.integers(SIDE - wide + 1))
    part = (slice(top, top + high), slice(left, left + wide))
    image = cv2.resize(picture[part], (side, side), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    depth = cv2.resize(truth[part].astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    if rng.random() < 0.5:
        image, depth = image[:, ::-1], depth[:, ::-1]
    toned = other_tones(rng, np.asarray(image, dtype=np.float32))
    low, top_value = np.percentile(depth[::2, ::2], [2, 99])
    depth = np.clip((depth - low) / max(top_value - low, 1e-4), -0.1, 1.2)
    return np.ascontiguousarray(toned.transpose(2, 0, 1), dtype=np.float32), np.ascontiguousarray(
        depth, dtype=np.float32
    )
