"""Another light, lens and print for a picture when it is shown: what changes no depth must not change the map."""

from __future__ import annotations

import cv2
import numpy as np

from training.materials import TILE, Array, Rng, noise_tiles


def other_tones(rng: Rng, image: Array) -> Array:
    """(side, side, 3) float32 sRGB 0..1, in and out. Each change by itself, most pictures get two or three."""
    if rng.random() < 0.5:
        image = _coloured(rng, image)
    if rng.random() < 0.4:
        image = image * _field(rng, image.shape[0], 0.35)
    if rng.random() < 0.5:
        image = _grained(rng, image)
    if rng.random() < 0.15:
        image = _printed(rng, image)
    if rng.random() < 0.7:
        light = image * rng.normal(1, 0.08, 3) * rng.uniform(0.7, 1.3)
        image = np.asarray(np.clip(light, 0, 1) ** (2 ** rng.uniform(-0.8, 0.8)), dtype=np.float32)
    if rng.random() < 0.1:
        image = np.repeat(image.mean(-1, keepdims=True), 3, -1)
    image = _focused(rng, image)
    if rng.random() < 0.35:
        noise = rng.normal(size=image.shape) * 10 ** rng.uniform(-2.5, -1.2)
        image = np.asarray(image + noise, dtype=np.float32)
    return np.asarray(np.clip(image, 0, 1), dtype=np.float32)


def _coloured(rng: Rng, image: Array) -> Array:
    """Channels mixed a little, now and then exchanged: another white, another film, another paint."""
    mix = np.eye(3) + rng.normal(size=(3, 3)) * 0.12
    if rng.random() < 0.15:
        mix = mix[rng.permutation(3)]
    return np.asarray(np.clip(image @ (mix / mix.sum(0)).astype(np.float32), 0, 1), dtype=np.float32)


def _field(rng: Rng, side: int, strength: float) -> Array:
    """Light that falls off across the picture, (side, side, 1), about 1."""
    count = int(rng.integers(2, 5))
    coarse = np.exp(rng.normal(size=(count, count)) * strength).astype(np.float32)
    return np.asarray(cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC), dtype=np.float32)[..., None]


def _grained(rng: Rng, image: Array) -> Array:
    """Detail on everything, as natural surfaces have it: noise whose power falls with frequency, at any size."""
    side, tiles = image.shape[0], noise_tiles()
    reach = int(rng.integers(side // 2, TILE))
    parts = []
    for _ in range(3 if rng.random() < 0.4 else 1):
        top, left = rng.integers(TILE - reach + 1, size=2)
        part = tiles[int(rng.integers(len(tiles)))][top : top + reach, left : left + reach]
        parts.append(cv2.resize(part, (side, side), interpolation=cv2.INTER_LINEAR))
    grain = np.stack(parts, -1) - np.float32(0.5)
    if len(parts) > 1:
        grain = 0.7 * grain.mean(-1, keepdims=True) + 0.3 * grain  # colours change less than light
    return np.asarray(np.clip(image * (1 + np.float32(rng.uniform(0.1, 0.9)) * grain), 0, 1), dtype=np.float32)


def _printed(rng: Rng, image: Array) -> Array:
    """Flat marks of one colour, as on posters, clothes and walls."""
    side = image.shape[0]
    image = np.ascontiguousarray(image)
    for _ in range(rng.integers(1, 6)):
        mark = np.zeros((side, side), np.float32)
        middle = tuple(int(v) for v in rng.integers(0, side, 2))
        axes = tuple(int(v) for v in rng.uniform(0.02, 0.13, 2) * side + 1)
        if rng.random() < 0.5:
            cv2.ellipse(mark, middle, axes, float(rng.uniform(0, 180)), 0, 360, 1.0, -1)
        else:
            corners = cv2.boxPoints((middle, (2.0 * axes[0], 2.0 * axes[1]), float(rng.uniform(0, 180))))
            cv2.fillPoly(mark, [corners.astype(np.int32)], 1.0)
        mark *= np.float32(rng.uniform(0.3, 1.0))
        ink = (image.mean((0, 1)) + rng.normal(size=3) * 0.3).astype(np.float32)
        image = image * (1 - mark[..., None]) + np.clip(ink, 0, 1) * mark[..., None]
    return np.asarray(image, dtype=np.float32)


def _focused(rng: Rng, image: Array) -> Array:
    """Softer or sharper by a little, or left alone."""
    kind = rng.random()
    if kind < 0.25:
        return np.asarray(cv2.GaussianBlur(image, (0, 0), float(rng.uniform(0.3, 1.3))), dtype=np.float32)
    if kind < 0.4:
        soft = cv2.GaussianBlur(image, (0, 0), 1.0)
        return np.asarray(np.clip(image + float(rng.uniform(0.3, 1.2)) * (image - soft), 0, 1), dtype=np.float32)
    return image
