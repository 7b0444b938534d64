"""From a scene to a photograph and its inverse depth: rays, lamps and sun with shadows, haze, lens, sensor."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from training.clutter import richer
from training.materials import Array, Richer, Rng, paint
from training.scenes import Scene, scene
from training.solids import NOTHING, turned

SIDE = 144  # of the stored picture, px
RAYS = 176  # a side; area-averaged to SIDE, which smooths the edges of both picture and depth


def render(rng: Rng) -> tuple[np.ndarray, np.ndarray, str]:
    """A picture (144, 144, 3) uint8 sRGB, inverse depth (144, 144) float16 in 1/m (0 = sky), family."""
    what = richer(rng) if isinstance(rng, Richer) else scene(rng)
    ways = _ways(what)
    eye = np.array([0, what.height, 0], dtype=np.float32)
    depth, normals, albedo = _cast(what, eye, ways)
    sky = depth >= NOTHING / 2
    inverse = np.where(sky, 0, 1 / np.maximum(depth, 0.05)).astype(np.float32)
    points = (eye + np.where(sky, 1, depth)[:, None] * ways).astype(np.float32)
    light = _lamps(rng, what, points, normals) if what.indoor else _sun(rng, what, points, normals)
    colours = albedo * light * _occlusion(inverse)
    if not what.indoor or sky.any():
        colours = _air(rng, colours, ways, depth, sky)
    picture = _lens(rng, colours.reshape(RAYS, RAYS, 3), inverse.reshape(RAYS, RAYS), what.family)
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    truth = cv2.resize(inverse.reshape(RAYS, RAYS), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return _sensor(rng, np.asarray(small, dtype=np.float32)), truth.astype(np.float16), what.family


def _ways(what: Scene) -> Array:
    """Directions (n, 3) of the rays in the world; their z along the camera's axis is 1, so that t is the depth."""
    grid = (np.arange(RAYS) + 0.5) / RAYS * 2 - 1
    x, y = np.meshgrid(grid * what.field[0], -grid * what.field[1])
    camera = np.stack([x, y, np.ones_like(x)], -1).reshape(-1, 3)
    return (camera @ turned(0, -what.pitch, what.roll).T).astype(np.float32)


def _cast(what: Scene, eye: Array, ways: Array) -> tuple[Array, Array, Array]:
    """Depth (n,), normals (n, 3) towards the eye, and colours (n, 3) of what each ray meets first."""
    depth = np.full(len(ways), NOTHING, dtype=np.float32)
    owner = np.full(len(ways), -1, dtype=np.int64)
    for index, one in enumerate(what.solids):
        met = one.hit(eye, ways)
        nearer = met < depth
        depth[nearer], owner[nearer] = met[nearer], index
    normals, albedo = np.zeros_like(ways), np.zeros_like(ways)
    for index in np.unique(owner[owner >= 0]):
        mine = owner == index
        far = depth[mine]
        normal, uv = what.solids[index].surface(eye + far[:, None] * ways[mine])
        slant = (normal * ways[mine]).sum(-1)
        normal[slant > 0] *= -1
        footprint = far * np.float32(2 * what.field[0] / RAYS) / np.maximum(np.abs(slant), 0.03)
        normals[mine], albedo[mine] = normal, paint(what.solids[index].look, uv, footprint)
    return depth, normals, albedo


def _shadow(what: Scene, points: Array, normals: Array, towards: Array) -> Array:
    """1 where light from ``points + towards`` arrives, 0 in shadow, (n, 1); every second ray a side, then smoothed."""

    def half(a: Array) -> Array:
        return np.ascontiguousarray(a.reshape(RAYS, RAYS, 3)[::2, ::2].reshape(-1, 3))

    start, way = half(points + normals * np.float32(0.01)), half(towards)
    dark = np.zeros(len(start), dtype=bool)
    for one in what.solids:
        if np.abs(one.axes).max() < 40:
            dark |= one.hit(start, way) < 1
    mask = cv2.resize(1 - dark.reshape(RAYS // 2, -1).astype(np.float32), (RAYS, RAYS), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), 1.5).reshape(-1, 1), dtype=np.float32)


def _lamps(rng: Rng, what: Scene, points: Array, normals: Array) -> Array:
    """Light (n, 3) of a room: an even share and one to three lamps, of which one throws shadows."""
    light = np.full_like(points, rng.uniform(0.15, 0.5))
    for index in range(rng.integers(1, 4)):
        place = np.array([rng.normal() * 1.2, what.height + rng.uniform(0, 1), rng.uniform(-0.5, 3)])
        towards = (place - points).astype(np.float32)
        square = (towards * towards).sum(-1, keepdims=True) + np.float32(0.15)
        facing = np.maximum((normals * towards).sum(-1, keepdims=True), 0) / np.sqrt(square)
        seen = _shadow(what, points, normals, towards) if index == 0 else 1
        warm = np.array([1, 1 - rng.uniform(0, 0.25), 1 - rng.uniform(0, 0.5)])
        light += facing * seen * warm * rng.uniform(0.6, 3) * np.minimum(1 / square, 1.5)
    return light.astype(np.float32)


def _sun(rng: Rng, what: Scene, points: Array, normals: Array) -> Array:
    """Light (n, 3) outdoors: sky from above, and on three of four days a sun, from any side."""
    light = rng.uniform(0.35, 0.8) * (0.65 + 0.35 * normals[:, 1:2]) * np.array([0.9, 0.95, 1])
    if rng.random() < 0.75:
        up, side = rng.uniform(0.1, 1.4), rng.uniform(0, 6.3)
        sun = np.array([np.cos(up) * np.sin(side), np.sin(up), np.cos(up) * np.cos(side)], dtype=np.float32)
        seen = _shadow(what, points, normals, np.broadcast_to(sun * 300, points.shape))
        warm = np.array([1, 1 - rng.uniform(0, 0.25), 1 - rng.uniform(0, 0.5)])
        light = light + np.maximum(normals @ sun, 0)[:, None] * seen * warm * rng.uniform(0.3, 1.5)
    return np.asarray(light, dtype=np.float32)


def _occlusion(inverse: Array) -> Array:
    """Darker where the neighbourhood is nearer, (n, 1): the soft shade of corners, from the depth alone."""
    log = np.log(inverse.reshape(RAYS, RAYS) + np.float32(0.01))
    shade = sum(np.clip(cv2.GaussianBlur(log, (0, 0), s) - log, 0, 0.6) for s in (3, 8))
    return np.asarray(1 - 0.35 * np.asarray(shade), dtype=np.float32).reshape(-1, 1)


def _air(rng: Rng, colours: Array, ways: Array, depth: Array, sky: np.ndarray) -> Array:
    """Sky (clear, grey, dusk or night) and haze that grows with distance."""
    mood = rng.choice(["clear", "grey", "dusk", "night"], p=[0.5, 0.3, 0.1, 0.1])
    top, low = {
        "clear": (np.array([0.15, 0.35, 0.8]), np.array([0.6, 0.75, 0.9])),
        "grey": (np.full(3, rng.uniform(0.5, 0.9)), np.full(3, rng.uniform(0.6, 1))),
        "dusk": (np.array([0.25, 0.25, 0.4]), np.array([1, 0.5, 0.3])),
        "night": (np.array([0.01, 0.01, 0.03]), np.array([0.04, 0.04, 0.06])),
    }[str(mood)]
    up = np.clip(ways[:, 1:2] / np.linalg.norm(ways, axis=-1, keepdims=True), 0, 1) ** 0.6
    dome = low + (top - low) * up
    if mood != "night" and rng.random() < 0.6:
        small = cv2.resize(rng.random((6, 9)).astype(np.float32), (RAYS, RAYS), interpolation=cv2.INTER_CUBIC)
        dome = dome + np.clip(small.reshape(-1, 1) - 0.45, 0, 1) * rng.uniform(0.3, 1.2)
    if mood == "night":
        colours = colours * np.float32(0.4)
    thick = 10 ** rng.uniform(-3.5, -1.5) if rng.random() < 0.6 else 0.0
    veil = (1 - np.exp(-thick * np.minimum(depth, 1e5)))[:, None]
    return np.asarray(np.where(sky[:, None], dome, colours * (1 - veil) + low * veil), dtype=np.float32)


def _lens(rng: Rng, picture: Array, inverse: Array, family: str) -> Array:
    """Exposure and, mostly in portraits and close-ups, blur that grows with the distance from the plane of focus."""
    picture = picture * np.float32(rng.uniform(0.14, 0.4) / max(float(picture.mean()), 0.02))
    often = {"portrait": 0.8, "pet": 0.6, "product": 0.4, "tabletop": 0.4}.get(family, 0.08)
    if rng.random() > often:
        return picture
    focus = np.percentile(inverse, rng.uniform(60, 97))
    blur = np.abs(inverse - focus) / max(float(np.percentile(inverse, 98)), 1e-3) * 2 ** rng.uniform(0.5, 3)
    for sigma in (0.8, 1.6, 3.2, 6.4):
        share = np.clip((blur - sigma * 0.5) / (sigma * 0.4), 0, 1).astype(np.float32)
        weight = np.maximum(share, 0.02)[..., None]
        soft = cv2.GaussianBlur(picture * weight, (0, 0), sigma) / cv2.GaussianBlur(weight, (0, 0), sigma)[..., None]
        share = cv2.GaussianBlur(share, (0, 0), sigma / 2)[..., None]
        picture = picture * (1 - share) + soft * share
    return np.asarray(picture, dtype=np.float32)


def _sensor(rng: Rng, picture: NDArray[np.floating]) -> np.ndarray:
    """White balance, tone curve, saturation, contrast, noise, and mostly JPEG: (144, 144, 3) uint8."""
    picture = np.clip(picture * rng.normal(1, 0.06, 3), 0, 1) ** (1 / rng.uniform(1.8, 2.4))
    grey = picture.mean(-1, keepdims=True)
    picture = grey + (picture - grey) * (rng.uniform(0.6, 1.6) if rng.random() < 0.93 else 0)
    picture = (
        (picture - 0.5) * rng.uniform(0.8, 1.35) + 0.5 + rng.normal(size=picture.shape) * 10 ** rng.uniform(-2.8, -1.7)
    )
    whole = (np.clip(picture, 0, 1) * 255).astype(np.uint8)
    if rng.random() < 0.6:
        _, packed = cv2.imencode(".jpg", whole, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(30, 95))])
        whole = np.asarray(cv2.imdecode(packed, cv2.IMREAD_COLOR), dtype=np.uint8)
    return whole
