"""What scenes are furnished with: floors, walls, boxes, furniture, trees. Metres; x right, y up, z ahead."""

from __future__ import annotations

import numpy as np

from training.materials import Rng, material
from training.solids import Solid, solid, turned


def box(
    rng: Rng, place: tuple[float, float, float], half: tuple[float, float, float], role: str, yaw: float = 0.0
) -> Solid:
    """A cube stretched to half sizes ``half`` whose lower face is centred on ``place``."""
    centre = np.array([place[0], place[1] + half[1], place[2]])
    return solid(False, centre, turned(yaw) * np.asarray(half), material(rng, role))


def floor(rng: Rng, role: str) -> Solid:
    return box(rng, (0, -1, 0), (3000, 0.5, 3000), role, float(rng.uniform(0, 3)))


def things(rng: Rng, count: int, x: tuple[float, float], z: tuple[float, float], size: float) -> list[Solid]:
    """Boxes, balls and columns on the plane y = 0, in metres."""
    out = []
    for _ in range(count):
        s, place = size * float(2 ** rng.uniform(-1.3, 1)), (rng.uniform(*x), rng.uniform(*z))
        sizes = s * rng.uniform(0.3, 1.2, 3)
        tilt = turned(rng.uniform(0, 3), *(rng.normal(size=2) * 0.5 if rng.random() < 0.15 else (0, 0)))
        centre = np.array([place[0], sizes[1], place[1]])
        out.append(solid(rng.random() < 0.45, centre, tilt * sizes, material(rng, "object")))
    return out


def shell(rng: Rng, width: float, depth: float, high: float, yaw: float) -> list[Solid]:
    """Floor, walls and ceiling of a room around the camera, with things that hang on the walls."""
    turn, wall, out = turned(yaw), material(rng, "wall"), [floor(rng, "floor")]
    out[0] = solid(False, np.array([0, -0.5, 0]), turned(yaw) * np.array([100, 0.5, 100]), out[0].look)
    for side, size in (
        ((-width - 0.5, 0), (0.5, depth)),
        ((width + 0.5, 0), (0.5, depth)),
        ((0, depth + 0.5), (width, 0.5)),
    ):
        centre = turn @ np.array([side[0], high / 2, side[1]])
        look = wall if rng.random() < 0.7 else material(rng, "wall")
        out.append(solid(False, centre, turn * np.array([size[0], high / 2, size[1]]), look))
    out.append(solid(False, np.array([0, high + 0.5, 0]), turn * np.array([100, 0.5, 100]), material(rng, "wall")))
    for _ in range(rng.integers(0, 5)):
        centre = turn @ np.array([rng.uniform(-1, 1) * width, rng.uniform(0.5, 0.8) * high, depth])
        half = np.array([rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.6), 0.04])
        out.append(solid(False, centre, turn * half, material(rng, "object")))
    return out


def furniture(rng: Rng, x: float, z: float) -> list[Solid]:
    """A table, chair, sofa or cupboard at (x, z), of boxes."""
    yaw, kind = float(rng.uniform(0, 6.3)), rng.integers(4)
    if kind == 0:
        return [box(rng, (x, 0, z), (rng.uniform(0.3, 0.9), rng.uniform(0.4, 1.1), 0.3), "floor", yaw)]
    wide, deep, seat = (rng.uniform(0.4, 1), rng.uniform(0.3, 0.5), 0.72) if kind == 1 else (0.24, 0.24, 0.45)
    if kind == 3:
        wide, deep, seat = rng.uniform(0.6, 1.1), 0.42, 0.42
    look, turn = material(rng, "cloth" if kind == 3 else "floor"), turned(yaw)
    middle = np.array([x, 0.0, z])
    thick = seat / 2 if kind == 3 else 0.025
    out = [solid(False, middle + np.array([0, seat - thick, 0]), turn * np.array([wide, thick, deep]), look)]
    if kind != 3:
        for sx, sz in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            leg = middle + turn @ np.array([sx * (wide - 0.03), seat / 2, sz * (deep - 0.03)])
            out.append(solid(False, leg, turn * np.array([0.025, seat / 2, 0.025]), look))
    if kind >= 2:
        back = middle + turn @ np.array([0, seat + 0.2, deep])
        out.append(solid(False, back, turn * np.array([wide, 0.25, 0.06]), look))
    return out


def tree(rng: Rng, x: float, z: float, high: float) -> list[Solid]:
    """A stem and a crown of balls, or a bush where ``high`` is small; metres."""
    look = material(rng, "plant")
    out = [box(rng, (x, 0, z), (0.025 * high, 0.3 * high, 0.025 * high), "hair")]
    for _ in range(rng.integers(2, 6)):
        centre = np.array(
            [x + rng.normal() * 0.13 * high, high * rng.uniform(0.5, 0.85), z + rng.normal() * 0.13 * high]
        )
        out.append(solid(True, centre, np.diag(high * rng.uniform(0.1, 0.26, 3)), look))
    return out
