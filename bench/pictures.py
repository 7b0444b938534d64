"""Pictures to measure with: detail at every scale, so that coders work about as hard as on photographs."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

SIZES = {"384": (384, 384), "1080p": (1920, 1080), "12mp": (4000, 3000), "48mp": (8000, 6000)}
DRAWN = ("384.jpg", "1080p.jpg", "12mp.jpg", "12mp.png", "48mp.heic")
KINDS = (*DRAWN, "1080p-progressive.jpg")


def pixels(width: int, height: int, seed: int = 7) -> NDArray[np.uint8]:
    """(height, width, 3) uint8: noise of eight octaves, the finer the fainter."""
    random = np.random.default_rng(seed)
    whole = np.zeros((height, width, 3), np.float32)
    for octave in range(8):
        cells = (max(2, height >> (9 - octave)), max(2, width >> (9 - octave)), 3)
        grid = random.standard_normal(cells, np.float32) * np.float32(48 / 1.6**octave)
        whole += cv2.resize(grid, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.clip(whole + 128, 0, 255).astype(np.uint8)


def write(path: Path, kind: str) -> bool:
    """Write one picture of a kind of ``KINDS``; False where this installation cannot make it."""
    name, _, ending = kind.partition(".")
    size, _, coding = name.partition("-")
    rgb = pixels(*SIZES[size])
    if ending == "heic":
        import pillow_heif

        try:
            pillow_heif.from_bytes("RGB", (rgb.shape[1], rgb.shape[0]), rgb.tobytes()).save(path, quality=80)
        except Exception as error:  # an installation without an encoder says so in one of many ways
            print(f"48-megapixel HEIC is left out: {error}")
            return False
        return True
    settings = [cv2.IMWRITE_PNG_COMPRESSION, 1]
    if ending == "jpg":
        settings = [cv2.IMWRITE_JPEG_QUALITY, 92, cv2.IMWRITE_JPEG_PROGRESSIVE, int(coding == "progressive")]
    return cv2.imwrite(str(path), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), settings)


def made(cache: Path, kind: str) -> Path | None:
    """The picture of a kind, made once; ``None`` where it cannot be made."""
    path = cache / kind
    refused = cache / f"{kind}.refused"
    if not path.exists() and not refused.exists() and not write(path, kind):
        refused.touch()
    return path if path.exists() else None


def fill(folder: Path, picture: Path, count: int) -> list[Path]:
    """``count`` copies of a picture in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(picture, folder / f"shot-{number:05}{picture.suffix}")) for number in range(count)]
