"""What stands where: nine families of pictures, five of which hold people or pets, and the camera."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.materials import Rng, material
from training.people import person, pet
from training.solids import Solid, solid, turned
from training.things import box, floor, furniture, shell, things, tree

# family: share of all pictures. Portraits, people and pets together are a third; streets and rooms add more people.
FAMILIES = {
    "room": 0.24,
    "desk": 0.08,
    "street": 0.12,
    "landscape": 0.08,
    "tabletop": 0.1,
    "product": 0.06,
    "portrait": 0.14,
    "people": 0.1,
    "pet": 0.08,
}


@dataclass(frozen=True, slots=True)
class Scene:
    """Bodies and a camera: ``height`` in metres above y = 0, radians, ``field`` = tangents of half the view."""

    family: str
    solids: list[Solid]
    height: float
    pitch: float
    roll: float
    field: tuple[float, float]
    indoor: bool


def scene(rng: Rng) -> Scene:
    """A scene of a family drawn by its share; portrait format and wide lenses squash as photographs made square do."""
    family = str(rng.choice(list(FAMILIES), p=list(FAMILIES.values())))
    field = framed(rng, family)
    solids, height, pitch, indoor = BUILDERS[family](rng, field)
    roll = float(rng.normal() * (0.12 if rng.random() < 0.2 else 0.025))
    return Scene(family, solids, height, pitch, roll, field, indoor)


def framed(rng: Rng, family: str) -> tuple[float, float]:
    """Tangents of half the view, across and up."""
    half = float(np.tan(np.radians(rng.uniform(16, 32) if rng.random() < 0.8 else rng.uniform(32, 48))))
    aspect = float(rng.choice([4 / 3, 3 / 2, 1.0, 3 / 4, 16 / 9, 3.3], p=[0.32, 0.22, 0.12, 0.18, 0.11, 0.05]))
    if family in ("portrait", "pet") and rng.random() < 0.5:
        aspect = 1 / max(aspect, 1 / aspect)
    return half * aspect**0.5, half / aspect**0.5


Field = tuple[float, float]
Built = tuple[list[Solid], float, float, bool]


def _room(rng: Rng, field: Field) -> Built:
    width, depth = float(rng.uniform(1.3, 4)), float(rng.uniform(2.5, 8))
    out = shell(rng, width, depth, float(rng.uniform(2.3, 3.2)), float(rng.normal() * 0.45))
    for _ in range(rng.integers(3, 11)):
        z = float(rng.uniform(0.9, depth))
        out += furniture(rng, float(np.clip(rng.uniform(-1, 1) * z * field[0], -width, width)), z)
    if rng.random() < 0.3:  # a lamp, a shelf, a door frame: what is near is not always below
        z = float(rng.uniform(0.6, 1.6))
        place = (float(rng.uniform(-1, 1) * z * field[0]), float(rng.uniform(1.2, 2.0)), z)
        out.append(box(rng, place, (rng.uniform(0.05, 0.5), rng.uniform(0.1, 0.5), 0.1), "object", rng.uniform(0, 3)))
    if rng.random() < 0.35:
        z = rng.uniform(1.3, depth)
        out += person(
            rng, np.array([rng.uniform(-0.6, 0.6) * z * field[0], 0, z]), rng.uniform(1.5, 1.9), rng.uniform(0, 6.3)
        )
    return out, float(rng.uniform(0.8, 1.8)), float(-rng.uniform(-0.1, 0.45)), True


def _street(rng: Rng, field: Field) -> Built:
    out, half = [floor(rng, "ground")], float(rng.uniform(3, 12))
    out[0] = solid(False, np.array([0, -0.5, 0]), np.diag([3000, 0.5, 3000]), out[0].look)
    for side in (-1, 1):
        z = float(rng.uniform(-3, 6))
        while z < 90:
            deep, high = float(rng.uniform(3, 10)), float(rng.uniform(2, 11))
            if rng.random() < 0.85:
                out.append(
                    box(rng, (side * (half + 6), 0, z + deep), (6 * rng.uniform(0.7, 1.1), high, deep), "facade")
                )
            z += 2 * deep + (rng.uniform(0, 12) if rng.random() < 0.4 else 0)
    for _ in range(rng.integers(1, 7)):
        x, z = float(rng.choice([-1, 1]) * half * rng.uniform(0.3, 0.7)), float(4 * 10 ** rng.uniform(0, 1.1))
        body, yaw = material(rng, "object"), float(rng.normal() * 0.1)
        for y, size in ((0.6, (0.85, 0.4, 2.1)), (1.1, (0.75, 0.35, 1.2))):
            out.append(solid(False, np.array([x, y, z]), turned(yaw) * np.asarray(size), body))
    for _ in range(rng.integers(0, 4)):
        z = float(4 * 10 ** rng.uniform(0, 0.9))
        out += person(rng, np.array([rng.uniform(-1, 1) * half, 0, z]), rng.uniform(1.5, 1.9), rng.uniform(0, 6.3))
    for _ in range(rng.integers(0, 4)):
        out += tree(
            rng, float(rng.choice([-1, 1]) * half), float(5 * 10 ** rng.uniform(0, 1)), float(rng.uniform(3, 8))
        )
    return out, float(rng.uniform(1.2, 2.5)), float(rng.normal() * 0.08), False


def _landscape(rng: Rng, field: Field) -> Built:
    out = [floor(rng, "ground")]
    out[0] = solid(False, np.array([0, -0.5, 0]), np.diag([3000, 0.5, 3000]), out[0].look)
    for _ in range(rng.integers(0, 6)):
        z = float(10 ** rng.uniform(1.6, 2.9))
        centre = np.array([rng.uniform(-1.3, 1.3) * z * field[0], 0, z])
        sizes = z * np.array([rng.uniform(0.2, 0.9), rng.uniform(0.04, 0.22), rng.uniform(0.1, 0.3)])
        out.append(solid(True, centre, np.diag(sizes), material(rng, "plant" if rng.random() < 0.6 else "ground")))
    for _ in range(rng.integers(2, 12)):
        z = float(10 ** rng.uniform(0.5, 1.9))
        out += tree(rng, float(rng.uniform(-1.1, 1.1) * z * field[0]), z, float(rng.choice([0.8, rng.uniform(3, 10)])))
    if rng.random() < 0.3:
        z = float(10 ** rng.uniform(0.7, 1.6))
        out.append(box(rng, (rng.uniform(-0.7, 0.7) * z * field[0], 0, z), (3, 2.5, 3), "facade", rng.uniform(0, 3)))
    return out, float(rng.uniform(0.6, 3)), float(rng.normal() * 0.12), False


def _desk(rng: Rng, field: Field) -> Built:
    """A desk seen by who sits at it: screens, stacks, vessels, and a wall or a room close behind."""
    if rng.random() < 0.4:
        out = shell(rng, float(rng.uniform(1.3, 3)), float(rng.uniform(1.6, 5)), 2.6, float(rng.normal() * 0.4))
        for _ in range(rng.integers(0, 4)):
            out += furniture(rng, float(rng.normal()), float(rng.uniform(1.6, 4)))
    else:
        wall = box(rng, (0, -1, float(rng.uniform(0.9, 1.8))), (50, 5, 0.1), "wall", float(rng.normal() * 0.3))
        out = [floor(rng, "floor"), wall]
    top, near, far = 0.72, float(rng.uniform(0.1, 0.4)), float(rng.uniform(0.7, 1.2))
    turn = float(rng.normal() * 0.2)
    out.append(box(rng, (0, top - 0.04, (near + far) / 2), (1.2, 0.02, (far - near) / 2), "floor", turn))
    for _ in range(rng.integers(4, 16)):
        z = float(rng.uniform(near + 0.1, far))
        x, yaw, kind = float(rng.uniform(-1, 1) * z * field[0]), float(rng.normal() * 0.6), rng.integers(4)
        if kind == 0:
            out.append(box(rng, (x, top, z), (rng.uniform(0.15, 0.3), rng.uniform(0.1, 0.25), 0.02), "object", yaw))
        elif kind == 1:
            for level in range(rng.integers(1, 6)):
                half = (rng.uniform(0.07, 0.16), 0.018, rng.uniform(0.08, 0.13))
                out.append(box(rng, (x, top + 0.036 * level, z), half, "object", yaw + rng.normal() * 0.15))
        else:
            size = rng.uniform(0.03, 0.1, 3)
            centre = np.array([x, top + size[1], z])
            out.append(solid(kind == 2, centre, turned(yaw) * size, material(rng, "object")))
    return out, top + float(rng.uniform(0.12, 0.6)), float(-rng.uniform(-0.05, 0.6)), True


def _tabletop(rng: Rng, field: Field) -> Built:
    high, pitch = float(rng.uniform(0.2, 0.7)), float(-rng.uniform(0.25, 1.2))
    reach = high / np.tan(-pitch)
    spread = np.hypot(high, reach) * field[0]
    out = things(rng, int(rng.integers(1, 12)), (-spread, spread), (reach * 0.7, reach * 1.6 + 0.1), 0.25 * float(high))
    out.append(
        box(rng, (0, -0.1, reach), (rng.uniform(0.6, 3), 0.05, rng.uniform(0.4, 2)), "floor", rng.normal() * 0.4)
    )
    out.append(box(rng, (0, -1.2, 0), (50, 0.2, 50), "floor"))
    out.append(box(rng, (0, -1, reach + rng.uniform(1.2, 4)), (50, 3, 0.1), "wall", rng.normal() * 0.2))
    return out, high, pitch, True


def _product(rng: Rng, field: Field) -> Built:
    far, size = float(rng.uniform(0.6, 1.5)), 0.0
    size = far * min(field) * float(rng.uniform(0.25, 0.6))
    out = things(rng, int(rng.integers(1, 5)), (-size, size), (far * 0.85, far * 1.15), size * 0.7)
    out.append(box(rng, (0, -1, 0), (50, 0.5, 50), "wall" if rng.random() < 0.6 else "floor"))
    out.append(box(rng, (0, -1, far * rng.uniform(1.6, 4)), (50, 9, 0.1), "wall", rng.normal() * 0.15))
    return out, size * float(rng.uniform(0.7, 2.2)), float(-rng.uniform(0, 0.4)), True


def _background(rng: Rng, far: float, field: Field) -> tuple[list[Solid], bool]:
    """A room, a street or a garden behind a subject that stands ``far`` metres away."""
    kind = rng.integers(3)
    if kind == 0:
        out = shell(
            rng, float(rng.uniform(1.5, 4)), far * float(rng.uniform(1.4, 3)) + 0.7, 3.0, float(rng.normal() * 0.3)
        )
        return out + furniture(rng, float(rng.normal()), far * 1.5 + 0.5), True
    out = (_street if kind == 1 else _landscape)(rng, field)[0]
    return [one for one in out if one.centre[2] > far * 1.3 + 1 or one.axes[0, 0] > 1000], False


def _portrait(rng: Rng, field: Field) -> Built:
    tall = float(rng.uniform(1.5, 1.9))
    shown = tall * float(rng.uniform(0.22, 0.75))
    far = max(shown / 2 / field[1], 0.45)
    out, indoor = _background(rng, far, field)
    out += person(rng, np.array([rng.normal() * 0.15 * far * field[0], 0, far]), tall, rng.normal() * 0.6)
    if rng.random() < 0.3:
        side = float(rng.choice([-1, 1]) * rng.uniform(0.4, 0.8))
        out += person(
            rng, np.array([side, 0, far * rng.uniform(0.9, 1.6)]), tall * rng.uniform(0.8, 1.1), rng.normal() * 0.6
        )
    return out, tall * 0.97 - shown * float(rng.uniform(0.3, 0.5)), float(rng.normal() * 0.05), indoor


def _people(rng: Rng, field: Field) -> Built:
    far = float(rng.uniform(2, 6))
    out, indoor = _background(rng, far, field)
    for _ in range(rng.integers(1, 5)):
        z = far * float(rng.uniform(0.8, 1.6))
        out += person(
            rng, np.array([rng.uniform(-0.8, 0.8) * z * field[0], 0, z]), rng.uniform(1, 1.9), rng.uniform(0, 6.3)
        )
    return out, float(rng.uniform(0.9, 1.7)), float(-rng.uniform(-0.05, 0.2)), indoor


def _pet(rng: Rng, field: Field) -> Built:
    high = float(rng.uniform(0.22, 0.6))
    far = max(high * float(rng.uniform(0.45, 1.3)) / min(field), high * 1.6)
    out, indoor = _background(rng, far, field)
    out += pet(rng, np.array([rng.normal() * 0.15 * far * field[0], 0, far]), high, rng.normal() * 1.0)
    return out, high * float(rng.uniform(0.7, 2.5)), float(-np.arctan2(high * rng.uniform(0, 1), far)), indoor


BUILDERS = {
    "room": _room,
    "desk": _desk,
    "street": _street,
    "landscape": _landscape,
    "tabletop": _tabletop,
    "product": _product,
    "portrait": _portrait,
    "people": _people,
    "pet": _pet,
}
