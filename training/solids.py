"""Bodies that rays can hit: unit spheres and unit cubes, moved and stretched. Metres; x right, y up, z ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.materials import Array, Material

NOTHING = np.float32(1e9)  # the distance of a ray that hits nothing


@dataclass(frozen=True, slots=True)
class Solid:
    """``axes`` (3, 3): its columns are the three half axes in metres. ``round`` is a sphere, else a cube."""

    round: bool
    centre: Array
    axes: Array
    inverse: Array
    look: Material

    def hit(self, origin: Array, ways: Array) -> Array:
        """Ray parameter (n,) of the nearest hit in front, ``NOTHING`` where missed.

        ``origin`` (3,) or (n, 3), ``ways`` (n, 3). Quadratic for the sphere, slabs for the cube, both in body space.
        """
        start = (origin - self.centre) @ self.inverse.T
        way = ways @ self.inverse.T
        if self.round:
            a, b = (way * way).sum(-1), (start * way).sum(-1)
            root = b * b - a * ((start * start).sum(-1) - 1)
            near = (-b - np.sqrt(np.maximum(root, 0))) / a
            return np.where((root > 0) & (near > 1e-3), near, NOTHING).astype(np.float32)
        safe = np.where(np.abs(way) < 1e-9, np.float32(1e-9), way)
        one, two = (-1 - start) / safe, (1 - start) / safe
        near, far = np.minimum(one, two).max(-1), np.maximum(one, two).min(-1)
        first = np.where(near > 1e-3, near, far)
        return np.where((far >= near) & (first > 1e-3), first, NOTHING).astype(np.float32)

    def surface(self, points: Array) -> tuple[Array, Array]:
        """Unit normals (n, 3), outward, and surface coordinates (n, 2) in metres of points (n, 3) on the body."""
        local = (points - self.centre) @ self.inverse.T
        face = np.abs(local).argmax(-1)
        rows = np.arange(len(local))
        outward = local.copy()
        if not self.round:
            outward = np.zeros_like(local)
            outward[rows, face] = np.sign(local[rows, face])
        normals = outward @ self.inverse
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True) + np.float32(1e-9)
        metres = local * np.linalg.norm(self.axes, axis=0)
        uv = np.stack([metres[rows, np.where(face == 0, 2, 0)], metres[rows, np.where(face == 1, 2, 1)]], -1)
        return normals.astype(np.float32), uv.astype(np.float32)


def solid(round_: bool, centre: NDArray[np.floating], axes: NDArray[np.floating], look: Material) -> Solid:
    """A body from its centre (3,) and half axes (3, 3), metres."""
    return Solid(
        round_, centre.astype(np.float32), axes.astype(np.float32), np.linalg.inv(axes).astype(np.float32), look
    )


def turned(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> NDArray[np.float64]:
    """Rotation (3, 3): roll about z, then pitch about x, then yaw about y, radians."""
    cy, sy, cx, sx, cz, sz = (f(a) for a in (yaw, pitch, roll) for f in (np.cos, np.sin))
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return np.asarray(about_y @ about_x @ about_z)


def limb(start: NDArray[np.floating], end: NDArray[np.floating], radius: float, look: Material) -> Solid:
    """A stretched ellipsoid between two points (3,), a little longer than their distance so that joints close."""
    along = end - start
    length = float(np.linalg.norm(along)) + 1e-6
    along = along / length
    side = np.cross(along, [0.0, 0.0, 1.0] if abs(along[2]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    axes = np.stack([side * radius, along * (length / 2 + radius * 0.6), np.cross(side, along) * radius], 1)
    return solid(True, (start + end) / 2, axes, look)
