"""The real pairs of photograph and measured depth, and the two halves that they were frozen into."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from training.materials import Array

SPLIT = Path(__file__).with_name("split.toml")
HEIGHT = 240  # of the grid that is compared, px


@dataclass(frozen=True, slots=True)
class Pair:
    """``picture`` (h, w, 3) uint8 RGB; ``inverse`` (240, v) float32, 1/m or proportional; ``known`` where measured.

    ``family`` is the data set that a real pair is from, or the kind of scene of a rendered one, which keeps its size.
    """

    name: str
    picture: np.ndarray
    inverse: Array
    known: np.ndarray
    metric: bool
    family: str


def halves() -> dict[str, list[str]]:
    """Names of the pairs of the ``selection`` and of the ``test`` half."""
    return tomllib.loads(SPLIT.read_text(encoding="utf-8"))


def read_pair(folder: Path, whole: bool = False) -> Pair:
    """Read one pair as its meta.json says; ``whole``: compared in the photograph's size."""
    facts = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    picture = np.asarray(cv2.imread(str(folder / facts["rgb"]), cv2.IMREAD_COLOR))[..., ::-1]
    path, loader = folder / facts["gt"], str(facts["loader"])
    if loader.startswith("npz"):
        raw = np.load(path)["arr_0"]
    elif loader == "npy":
        raw = np.load(path)
    else:
        raw = np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED))
        raw = raw[..., 0] if raw.ndim == 3 else raw
        if "v>>3" in loader:  # SUN RGB-D stores its values turned by three bits
            raw = (raw.astype(np.uint16) >> 3) | (raw.astype(np.uint16) << 13)
    raw = np.squeeze(raw)
    known = np.isfinite(raw) & (raw > 0)
    if "65535" in str(facts["invalid"]):
        known &= raw != 65535
    value = np.where(known, raw, 1).astype(np.float32) / np.float32(facts["divide_by"])
    metric = facts["gt_type"] == "depth"
    inverse = np.where(known, 1 / np.maximum(value, 1e-3) if metric else value, 0).astype(np.float32)
    height = picture.shape[0] if whole else HEIGHT
    size = (round(height * picture.shape[1] / picture.shape[0]), height)
    inverse = cv2.resize(inverse, size, interpolation=cv2.INTER_NEAREST).astype(np.float32)
    seen = cv2.resize(known.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    if facts["scene"].startswith("nyu"):  # its photographs have a white frame
        rim = 20 * height // HEIGHT
        seen[:rim], seen[-rim:], seen[:, :rim], seen[:, -rim:] = False, False, False, False
    return Pair(facts["scene"], np.ascontiguousarray(picture), inverse, seen, metric, facts["scene"].split("_")[0])


def rendered(scenes: Path, held_out: bool = True) -> list[Pair]:
    """The rendered pairs in ``scenes`` that no training has seen, or the first shard of the others; sky is unknown."""
    from training.shards import HELD_OUT, read_shard

    pictures, truths, families = read_shard(scenes, HELD_OUT if held_out else 0)
    found = []
    for index, (picture, truth, family) in enumerate(zip(pictures, truths, families, strict=True)):
        inverse = truth.astype(np.float32)
        found.append(Pair(f"{family} {index}", picture, inverse, inverse > 1e-4, True, str(family)))
    return found
