"""Richer scenes, for shards from ``training.shards.RICHER`` on: clutter, shelves, slats, prints, views down.

The scenes of ``training.scenes`` taught what a room is, but on photographs the network lost its way among the many
small things that people own. The families are the same, and two more: a still life before a wall close behind, and
a view down.
"""

from __future__ import annotations

import numpy as np

from training.materials import Richer, Rng, material
from training.scenes import BUILDERS, FAMILIES, Built, Field, Scene, framed
from training.solids import Solid, limb, solid, turned
from training.things import box, floor, furniture, shell

MORE = {"still": 0.14, "down": 0.12}
SHARES = {name: share * (1 - sum(MORE.values())) for name, share in FAMILIES.items()} | MORE


def richer(rng: Richer) -> Scene:
    """A scene of a family drawn by its share, and what people leave about in it."""
    family = str(rng.choice(list(SHARES), p=list(SHARES.values())))
    field = framed(rng, family)
    solids, height, pitch, indoor = (BUILDERS | {"still": _still, "down": _down})[family](rng, field)
    if family in ("room", "people", "portrait", "pet") and indoor:
        solids += _about(rng, field)
    if rng.random() < 0.2:
        solids += _in_front(rng, height, pitch, field)
    roll = float(rng.normal() * (0.15 if rng.random() < 0.3 else 0.025))
    return Scene(family, solids, height, pitch, roll, field, indoor)


def heap(rng: Rng, place: tuple[float, float, float], count: int, spread: float, size: float) -> list[Solid]:
    """Small things that lie and stand about ``place``, at that height, metres."""
    out = []
    for _ in range(count):
        s = size * rng.uniform(0.2, 1.2, 3) * 2 ** rng.uniform(-0.7, 0.7)
        centre = np.array([place[0] + rng.normal() * spread, place[1] + s[1], place[2] + rng.normal() * spread])
        tilt = turned(rng.uniform(0, 3), *(rng.normal(size=2) * 0.3 if rng.random() < 0.3 else (0, 0)))
        out.append(solid(rng.random() < 0.4, centre, tilt * s, material(rng, str(rng.choice(["object", "cloth"])))))
    return out


def shelf(rng: Rng, x: float, z: float, yaw: float) -> list[Solid]:
    """Boards, and on them books and boxes, each row a little fuller or emptier."""
    turn, look, out = turned(yaw), material(rng, "floor"), []
    wide, deep, rows = float(rng.uniform(0.4, 1.0)), float(rng.uniform(0.12, 0.25)), int(rng.integers(2, 5))
    step, base = float(rng.uniform(0.28, 0.45)), float(rng.uniform(0.1, 0.9))

    def at(sx: float, sy: float, sz: float) -> np.ndarray:
        return np.asarray(np.array([x, 0.0, z]) + turn @ np.array([sx, sy, sz]))

    board = turn * np.array([wide, 0.015, deep])
    out += [solid(False, at(0, base + row * step, 0), board, look) for row in range(rows + 1)]
    for row in range(rows):
        left = -wide + 0.02
        while left < wide - 0.06 and len(out) < 40:
            thick, high = float(rng.uniform(0.015, 0.09)), step * float(rng.uniform(0.3, 0.48))
            centre = at(left + thick, base + row * step + high + 0.015, rng.normal() * 0.02)
            out.append(solid(False, centre, turn * np.array([thick, high, deep * 0.8]), material(rng, "object")))
            left += 2 * thick + (float(rng.uniform(0, 0.3)) if rng.random() < 0.3 else 0.002)
    return out


def slats(rng: Rng, x: float, z: float) -> list[Solid]:
    """A chair of slats: what stands behind shows through."""
    turn, look = turned(float(rng.uniform(0, 6.3))), material(rng, "floor")
    wide, seat, high = float(rng.uniform(0.2, 0.3)), float(rng.uniform(0.35, 0.5)), float(rng.uniform(0.3, 0.6))
    upright = rng.random() < 0.5

    def part(sx: float, sy: float, sz: float, half: tuple[float, float, float]) -> Solid:
        return solid(False, np.array([x, 0, z]) + turn @ np.array([sx, sy, sz]), turn * np.asarray(half), look)

    out = [part(0, seat, 0, (wide, 0.02, wide))]
    for sx in (-1, 1):
        out.append(part(sx * wide, (seat + high) / 2, wide, (0.02, (seat + high) / 2, 0.02)))
        out.append(part(sx * wide, seat / 2, -wide, (0.02, seat / 2, 0.02)))
    count = int(rng.integers(3, 6))
    for place in np.linspace(-0.8, 0.8, count):
        if upright:
            out.append(part(place * wide, seat + high / 2, wide, (0.6 * wide / count, high / 2, 0.012)))
        else:
            out.append(part(0, seat + high * (0.55 + place / 2), wide, (wide, 0.3 * high / count, 0.012)))
    return out


def _about(rng: Rng, field: Field) -> list[Solid]:
    """What makes a room lived in: shelves, chairs, heaps on the floor and higher up, pictures."""
    out: list[Solid] = []
    for _ in range(rng.integers(0, 3)):
        z = float(rng.uniform(1.2, 5))
        out += shelf(rng, float(rng.uniform(-1, 1) * z * field[0]), z, float(rng.normal() * 0.5))
    for _ in range(rng.integers(0, 3)):
        z = float(rng.uniform(1.0, 4))
        out += slats(rng, float(rng.uniform(-1, 1) * z * field[0]), z)
    for _ in range(rng.integers(1, 4)):
        z, high = float(rng.uniform(1, 5)), float(rng.choice([0.0, 0.0, 0.45, 0.75, 1.1]))
        place = (float(rng.uniform(-1, 1) * z * field[0]), high, z)
        if high:
            out.append(box(rng, (place[0], 0, z), (0.3, high / 2, 0.25), "floor"))
        out += heap(rng, place, int(rng.integers(2, 8)), 0.15, 0.09)
    return out


def _in_front(rng: Rng, height: float, pitch: float, field: Field) -> list[Solid]:
    """A thing that is near and cut by the frame: the corner of a table, a shoulder, a post, a leaf."""
    near = float(rng.uniform(0.35, 0.8))
    side, low = float(rng.choice([-1, 1]) * rng.uniform(0.5, 1.1)), float(rng.uniform(-1.3, 0.3))
    ahead = turned(0, -pitch) @ np.array([side * near * field[0], low * near * field[1], near])
    centre, size = np.array([0, height, 0]) + ahead, near * float(rng.uniform(0.1, 0.35))
    sizes = size * rng.uniform(0.3, 1.3, 3)
    return [solid(rng.random() < 0.5, centre, turned(rng.uniform(0, 3)) * sizes, material(rng, "object"))]


def _still(rng: Rng, field: Field) -> Built:
    """Things of all sizes on a table or a floor, one behind the other, before a wall close behind them."""
    far = float(rng.uniform(0.7, 2.5))
    wall = far * float(rng.uniform(1.05, 1.8))
    out = [floor(rng, "floor"), box(rng, (0, -1, wall), (50, 9, 0.1), "wall", float(rng.normal() * 0.25))]
    for _ in range(rng.integers(0, 5)):  # posters and pictures on the wall
        half = (rng.uniform(0.08, 0.4) * far, rng.uniform(0.08, 0.4) * far, 0.01)
        out.append(
            box(rng, (rng.uniform(-1, 1) * wall * field[0], rng.uniform(0, 1) * far, wall - 0.12), half, "print")
        )
    for _ in range(rng.integers(5, 18)):
        z = float(rng.uniform(far * 0.6, wall))
        x, size = float(rng.uniform(-1, 1) * z * field[0]), far * float(2 ** rng.uniform(-5, -2.2))
        sizes = size * rng.uniform(0.3, 1.3, 3) * (1, 2 if rng.random() < 0.4 else 1, 1)
        kind, turn = rng.random(), turned(float(rng.uniform(0, 3)))
        if kind < 0.25:  # it tapers: a cone, a pyramid, a lamp shade
            look = material(rng, "object")
            for level in range(6):
                part = sizes * (1 - level / 6, 0.18, 1 - level / 6)
                out.append(solid(kind < 0.12, np.array([x, sizes[1] * (0.18 + 0.3 * level), z]), turn * part, look))
        elif kind < 0.4:
            up = np.array([x, 0, z])
            tip = up + np.array([rng.normal() * 0.2, rng.uniform(0.5, 1.5), rng.normal() * 0.2]) * far * 0.4
            out.append(limb(up, tip, far * float(rng.uniform(0.008, 0.03)), material(rng, "object")))
        else:
            out.append(solid(kind < 0.65, np.array([x, sizes[1], z]), turn * sizes, material(rng, "object")))
    if rng.random() < 0.4:
        out += slats(rng, float(rng.normal() * 0.3 * far), far)
    return out, far * float(rng.uniform(0.15, 0.7)), float(-rng.uniform(-0.05, 0.5)), True


def _down(rng: Rng, field: Field) -> Built:
    """A corner of a room or a table top seen from above: little or no horizon, and the walls are not upright."""
    high, pitch = float(rng.uniform(1.1, 2.0)), float(-rng.uniform(0.45, 1.2))
    reach = high / np.tan(-pitch)
    out = shell(rng, float(rng.uniform(0.8, 3)), reach + float(rng.uniform(0.3, 2.5)), 2.6, float(rng.normal() * 0.7))
    for _ in range(rng.integers(1, 5)):
        x, z = float(rng.normal() * 0.8), reach * float(rng.uniform(0.5, 1.6))
        out += slats(rng, x, z) if rng.random() < 0.3 else furniture(rng, x, z)
    for _ in range(rng.integers(1, 4)):
        top = float(rng.choice([0.0, 0.45, 0.75]))
        place = (float(rng.normal() * 0.5), top, reach * float(rng.uniform(0.6, 1.4)))
        if top:
            out.append(box(rng, (place[0], top - 0.05, place[2]), (0.5, 0.025, 0.4), "floor", rng.uniform(0, 3)))
        out += heap(rng, place, int(rng.integers(2, 7)), 0.2, 0.08)
    return out, high, pitch, True
