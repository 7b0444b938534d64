"""What surfaces look like. Every material has a role, because walls, floors and people do not look alike.

Colours are linear RGB, float32, 0..1. Patterns are procedural: no photograph is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Rng = np.random.Generator

TILE = 256  # side of a noise tile, px
ANY_ROLE = 0.12  # share of materials that ignore their role, so that the role is a hint and never a rule

# role: (hue range, saturation range, value range, patterns, repeats per metre)
ROLES: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float], str, float]] = {
    "wall": ((0.02, 0.65), (0.0, 0.3), (0.45, 0.95), "plain plain plain noise bricks", 1.0),
    "floor": ((0.03, 0.13), (0.05, 0.6), (0.15, 0.7), "planks planks tiles noise plain", 1.5),
    "ground": ((0.08, 0.35), (0.05, 0.6), (0.1, 0.45), "noise noise tiles plain", 1.0),
    "facade": ((0.0, 0.15), (0.05, 0.5), (0.25, 0.85), "windows windows bricks plain", 0.35),
    "plant": ((0.18, 0.4), (0.3, 0.85), (0.08, 0.5), "noise", 6.0),
    "skin": ((0.03, 0.09), (0.2, 0.6), (0.2, 0.9), "plain", 3.0),
    "cloth": ((0.0, 1.0), (0.0, 0.8), (0.04, 0.8), "plain plain noise stripes", 6.0),
    "hair": ((0.02, 0.13), (0.1, 0.7), (0.02, 0.5), "fur", 8.0),
    "fur": ((0.03, 0.13), (0.0, 0.6), (0.04, 0.9), "fur fur noise", 5.0),
    "object": ((0.0, 1.0), (0.0, 0.9), (0.05, 0.95), "plain plain plain noise stripes tiles", 4.0),
    "metal": ((0.5, 0.68), (0.0, 0.6), (0.05, 0.8), "plain", 2.0),
}


class Richer(np.random.Generator):
    """Draws for the scenes of ``training.clutter``: what is painted with them has stains, prints and more colours."""


MORE_PATTERNS = {  # beside those of the role, for Richer draws
    "wall": ("print", "noise"),
    "floor": ("noise", "noise"),
    "facade": ("noise", "print"),
    "cloth": ("print", "stripes", "noise"),
    "object": ("print", "print", "planks"),
}


@dataclass(frozen=True, slots=True)
class Material:
    """Two colours, (3,) float32 linear 0..1, and the pattern that mixes them; ``repeats`` per metre.

    ``palette`` (6, 3): the colours of a print. ``stain``: how far light and dirt change it over a few decimetres.
    """

    first: Array
    second: Array
    pattern: str
    repeats: float
    tile: int
    shift: float
    palette: Array | None = None
    stain: float = 0.0


@cache
def noise_tiles() -> Array:
    """Tileable noise, (8, 256, 256) float32, 0..1: power falls with frequency, as in natural surfaces."""
    rng = np.random.default_rng(7)
    fy, fx = np.fft.fftfreq(TILE)[:, None], np.fft.rfftfreq(TILE)[None]
    tiles = []
    for steepness in np.linspace(0.7, 2.2, 8):
        frequency = np.hypot(fy, fx) + 1.0 / TILE
        spectrum = (rng.normal(size=frequency.shape) + 1j * rng.normal(size=frequency.shape)) * frequency**-steepness
        spectrum[0, 0] = 0
        tile = np.fft.irfft2(spectrum, s=(TILE, TILE))
        tiles.append(np.clip(tile / tile.std() * 0.22 + 0.5, 0, 1))
    return np.stack(tiles).astype(np.float32)


def colour(rng: Rng, role: str) -> Array:
    """A colour that the role may have, (3,) float32 linear 0..1."""
    hue, saturation, value = (rng.uniform(*limits) for limits in ROLES[role][:3])
    wheel = np.clip(np.abs(np.mod(hue * 6 + np.array([0, 4, 2]), 6) - 3) - 1, 0, 1)
    return np.asarray((value * (1 - saturation + saturation * wheel)) ** 2.2, dtype=np.float32)


def material(rng: Rng, role: str) -> Material:
    """A material for a role; now and then one of any other role. The role ``print`` is for ``Richer`` draws only."""
    if isinstance(rng, Richer) and role == "print":
        return replace(_richer(rng, "object", colour(rng, "object"), colour(rng, "object")), pattern="print")
    if rng.random() < ANY_ROLE:
        role = str(rng.choice(list(ROLES)))
    first = colour(rng, role)
    second = first * np.float32(rng.uniform(0.3, 0.95)) if rng.random() < 0.8 else colour(rng, role)
    if isinstance(rng, Richer):
        return _richer(rng, role, first, second)
    return Material(
        first,
        second,
        str(rng.choice(ROLES[role][3].split())),
        ROLES[role][4] * float(2 ** rng.uniform(-1, 1)),
        int(rng.integers(8)),
        float(rng.random()),
    )


def _richer(rng: Richer, role: str, first: Array, second: Array) -> Material:
    patterns = [*ROLES[role][3].split(), *MORE_PATTERNS.get(role, ())]
    return Material(
        first,
        second,
        str(rng.choice(patterns)),
        ROLES[role][4] * float(2 ** rng.uniform(-1.5, 1.5)),
        int(rng.integers(8)),
        float(rng.random()),
        np.stack([first, second, *(colour(rng, "object") for _ in range(4))]),
        float(rng.uniform(0, 0.9)) if rng.random() < 0.7 else 0.0,
    )


@cache
def prints() -> Array:
    """What is printed on things: (8, 256, 256) int64, numbers 0..5 of the colours of a palette. They repeat."""
    rng, tiles = np.random.default_rng(11), []
    for kind in range(8):
        tile = np.zeros((TILE, TILE), np.uint8)
        for _ in range(30 if kind % 2 else 14):
            ink, (x, y) = int(rng.integers(6)), (int(v) for v in rng.integers(0, TILE, 2))
            wide, high = (int(v) for v in 2 ** rng.uniform(2, 6, 2))
            if kind < 3:
                cv2.rectangle(tile, (x, y), (x + wide, y + high), ink, -1)
            elif kind < 6:
                cv2.ellipse(tile, (x, y), (wide, high), float(rng.uniform(0, 180)), 0, 360, ink, -1)
            else:  # lines of writing
                for line in range(y, min(y + 2 * high, TILE), 8):
                    cv2.line(tile, (x, line), (x + int(wide * rng.uniform(1, 3)), line), ink, 3)
        tiles.append(tile)
    return np.stack(tiles).astype(np.int64)


def paint(what: Material, uv: Array, footprint: Array) -> Array:
    """Colours (n, 3) of surface points ``uv`` (n, 2) in metres, seen with pixels ``footprint`` (n,) metres wide.

    Detail that is finer than a pixel fades to its mean, so that far floors do not sparkle.
    """
    u, v = (uv * np.float32(what.repeats)).T
    indices = ((np.stack([v, u]) * 64 + what.shift * TILE).astype(np.int64)) % TILE
    noise = noise_tiles()[what.tile][indices[0], indices[1]]
    if what.palette is not None and what.pattern == "print":
        return _stained(what, u, v, what.palette[prints()[what.tile][indices[0], indices[1]]])
    mix = _pattern(what.pattern, u, v, noise)
    sharp = np.clip(1.5 - 3 * footprint * what.repeats, 0, 1)
    mix = (mix * sharp + np.float32(0.35) * (1 - sharp))[:, None]
    return _stained(what, u, v, what.first * (1 - mix) + what.second * mix)


def _stained(what: Material, u: Array, v: Array, colours: Array) -> Array:
    """The same with light and dirt over it, from noise that is coarser than the pattern."""
    if what.stain:
        place = ((np.stack([v, u]) * 11 + what.shift * 2 * TILE).astype(np.int64)) % TILE
        colours = colours * (1 + what.stain * (noise_tiles()[(what.tile + 3) % 8][place[0], place[1]] - 0.5))[:, None]
    return np.asarray(np.clip(colours, 0, 1), dtype=np.float32)


def _pattern(name: str, u: Array, v: Array, noise: Array) -> Array:
    """How much of the second colour each point has, (n,) 0..1."""
    if name == "noise":
        return noise
    if name == "fur":
        return np.asarray(np.abs(np.sin(9 * u + 6 * noise)) * 0.6 + 0.4 * noise, dtype=np.float32)
    if name == "plain":
        return noise * np.float32(0.15)
    if name == "stripes":
        return (np.mod(u, 1) < 0.4).astype(np.float32)
    if name == "planks":
        joint = np.mod(u * 4, 1) < 0.05
        boards = np.sin(np.floor(u * 4) * 12.9) * 0.2 + 0.3
        return np.asarray(np.clip(boards + 0.3 * noise + joint * 0.6, 0, 1), dtype=np.float32)
    if name == "tiles":
        return ((np.mod(u * 2, 1) < 0.06) | (np.mod(v * 2, 1) < 0.06)) * np.float32(0.8) + noise * np.float32(0.2)
    if name == "bricks":
        row = np.floor(v * 8)
        joint = (np.mod(v * 8, 1) < 0.12) | (np.mod(u * 4 + 0.5 * np.mod(row, 2), 1) < 0.06)
        return (joint * np.float32(0.7) + noise * np.float32(0.3)).astype(np.float32)
    window = (np.abs(np.mod(u, 1) - 0.5) < 0.28) & (np.abs(np.mod(v, 1) - 0.5) < 0.32)
    return np.asarray(window * np.float32(0.9) + noise * np.float32(0.1), dtype=np.float32)
