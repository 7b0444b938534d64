"""People, portraits and pets: jointed bodies of ellipsoids, heads with features, hair and fur."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.materials import Material, Rng, material
from training.solids import Solid, limb, solid, turned

Vector = NDArray[np.float64]


def ball(centre: Vector, sizes: tuple[float, float, float], turn: Vector, look: Material) -> Solid:
    """An ellipsoid with half axes ``sizes`` in metres, turned by ``turn`` (3, 3)."""
    return solid(True, centre, turn * np.asarray(sizes), look)


def head(rng: Rng, centre: Vector, radius: float, turn: Vector) -> list[Solid]:
    """A head that looks along -z of ``turn``: skull, hair, nose, eyes, mouth, ears. ``radius``: half its height."""
    skin, hair, dark = material(rng, "skin"), material(rng, "hair"), material(rng, "hair")

    def at(x: float, y: float, z: float) -> Vector:
        return np.asarray(centre + turn @ np.array([x, y, z]) * radius)

    parts = [ball(centre, (radius * 0.76, radius, radius * 0.85), turn, skin)]
    parts.append(ball(at(0, -0.05, -0.88), (radius * 0.12, radius * 0.22, radius * 0.2), turn, skin))
    parts.append(ball(at(0, -0.48, -0.68), (radius * 0.25, radius * 0.07, radius * 0.1), turn, material(rng, "skin")))
    for side in (-1, 1):
        parts.append(ball(at(side * 0.3, 0.15, -0.76), (radius * 0.13, radius * 0.08, radius * 0.06), turn, dark))
        parts.append(ball(at(side * 0.78, 0, 0.05), (radius * 0.08, radius * 0.24, radius * 0.16), turn, skin))
    if rng.random() < 0.9:
        fall = rng.uniform(0, 0.5) if rng.random() < 0.5 else 0.0
        size = (radius * 0.86, radius * (0.85 + fall), radius * 0.85)
        parts.append(ball(at(0, 0.3 - fall, 0.2), size, turn, hair))
    return parts


def person(rng: Rng, foot: Vector, height: float, yaw: float) -> list[Solid]:
    """A standing, walking or sitting person, ``height`` in metres standing, feet at ``foot``."""
    top, legs, skin = material(rng, "cloth"), material(rng, "cloth"), material(rng, "skin")
    turn, sits = turned(yaw), rng.random() < 0.25
    hip_at = 0.28 if sits else 0.5

    def at(x: float, y: float, z: float) -> Vector:
        return np.asarray(foot + turn @ np.array([x, y, z]) * height)

    chest, hips = at(0, hip_at + 0.24, rng.normal() * 0.03), at(0, hip_at, 0)
    parts = [limb(hips, chest, 0.1 * height, top)]
    parts.append(ball(chest, (0.125 * height, 0.09 * height, 0.075 * height), turn, top))
    parts.append(limb(chest, at(0, hip_at + 0.36, 0), 0.035 * height, skin))
    parts += head(
        rng, at(0, hip_at + 0.42, -0.01), 0.075 * height, turned(yaw + rng.normal() * 0.4, rng.normal() * 0.15)
    )
    for side in (-1, 1):
        stride = rng.normal() * 0.08
        knee = at(side * 0.06, 0.27, -0.22 if sits else stride - 0.02)
        sole = at(side * 0.06, 0.02, -0.22 if sits else stride * 2)
        parts += [limb(at(side * 0.05, hip_at, 0), knee, 0.06 * height, legs), limb(knee, sole, 0.045 * height, legs)]
        shoulder, reach = at(side * 0.12, hip_at + 0.29, 0), rng.uniform(-0.15, 0.05)
        elbow = at(side * rng.uniform(0.14, 0.22), hip_at + 0.14, reach)
        hand = elbow + turn @ np.array([side * rng.normal() * 0.05, rng.uniform(-0.15, 0.12), -0.08]) * height
        parts += [limb(shoulder, elbow, 0.038 * height, top), limb(elbow, hand, 0.03 * height, skin)]
    return parts


def pet(rng: Rng, foot: Vector, height: float, yaw: float) -> list[Solid]:
    """A cat or dog, ``height`` in metres at the shoulder: barrel, legs, head with muzzle and ears, tail."""
    coat, dark, turn = material(rng, "fur"), material(rng, "hair"), turned(yaw)
    other = coat if rng.random() < 0.6 else material(rng, "fur")
    length = rng.uniform(0.5, 0.8)

    def at(x: float, y: float, z: float) -> Vector:
        return np.asarray(foot + turn @ np.array([x, y, z]) * height)

    sits = 0.35 if rng.random() < 0.3 else 0.0
    parts = [limb(at(0, 0.75 - sits, length), at(0, 0.8, -length * 0.7), rng.uniform(0.2, 0.32) * height, coat)]
    for side in (-0.16, 0.16):
        feet = [(z, z + rng.normal() * 0.06) for z in (-length * 0.7, length * 0.9)]
        parts += [limb(at(side, 0.6, hip), at(side, 0.03, toe), 0.08 * height, other) for hip, toe in feet]
    skull, size = at(0, rng.uniform(0.95, 1.3), -length - 0.2), rng.uniform(0.2, 0.3) * height
    face = turned(yaw + rng.normal() * 0.5, rng.normal() * 0.2)

    def on(x: float, y: float, z: float) -> Vector:
        return np.asarray(skull + face @ np.array([x, y, z]) * size)

    parts += [
        ball(skull, (size, size * 0.95, size), face, coat),
        limb(at(0, 0.8, -length * 0.7), skull, size * 0.7, coat),
    ]
    parts.append(ball(on(0, -0.25, -0.9), (size * 0.4, size * 0.35, size * rng.uniform(0.3, 0.7)), face, other))
    parts.append(ball(on(0, -0.15, -1.4), (size * 0.14, size * 0.1, size * 0.1), face, dark))
    for side in (-1, 1):
        parts.append(ball(on(side * 0.4, 0.2, -0.88), (size * 0.13,) * 3, face, dark))
        parts.append(limb(on(side * 0.6, 0.6, 0), on(side * 0.8, rng.choice([1.4, 0.0]), 0.1), size * 0.25, coat))
    parts.append(limb(at(0, 0.75 - sits, length), at(rng.normal() * 0.3, 0.9, length + 0.5), 0.06 * height, coat))
    return parts
