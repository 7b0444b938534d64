"""The corpus: is every valid file read right, and what becomes of every broken one?

``python -m bench.corpus`` writes two tables into docs/formats.md; ``tests/test_tables.py`` makes them again. *Right*:
the upright size of the manifest, finite values, a structure that is not called partial. Colours are held against Pillow
and Little CMS, where these can read the file, on a grid of 8 x 8 block means.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pillow_heif
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from bench import pages
from watcher import imagefile
from watcher.errors import FrameError

MOST_PIXELS = 400_000_000
GRID = 8
CLOSE = 8.0  # of 255, mean over the grid
Array = NDArray[Any]


def rows() -> list[dict[str, str]]:
    lines = (pages.CORPUS / "MANIFEST.tsv").read_text("utf-8").splitlines()
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def grid(picture: imagefile.Picture) -> Array:
    """(8, 8, 3) float32, 0..255: block means."""
    full = {"uint8": 1.0, "uint16": 257.0, "float32": 1 / 255}[picture.pixels.dtype.name]
    return _small(picture.pixels.astype(np.float32) / np.float32(full))


def _small(pixels: Array) -> Array:
    return np.asarray(cv2.resize(pixels, (GRID, GRID), interpolation=cv2.INTER_AREA))


def by_pillow(data: bytes) -> Array | None:
    """The same grid by Pillow and Little CMS; ``None`` where these do not show what a person would see."""
    pillow_heif.register_heif_opener()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                if image.mode in ("F", "I") or image.mode.startswith("I;16") or image.format in ("JPEG2000", "DNG"):
                    return None
                profile = image.info.get("icc_profile")
                shown = ImageOps.exif_transpose(image)
                if profile and shown.mode in ("RGB", "CMYK", "L"):
                    found = ImageCms.ImageCmsProfile(io.BytesIO(profile))
                    flags = ImageCms.Flags.BLACKPOINTCOMPENSATION
                    intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
                    target = ImageCms.createProfile("sRGB")
                    made = ImageCms.profileToProfile(shown, found, target, intent, "RGB", flags=flags)
                    shown = made if made is not None else shown
                elif shown.mode in ("RGBA", "LA", "P", "PA"):
                    shown = shown.convert("RGBA")
                plain = shown if shown.mode == "RGBA" else shown.convert("RGB")
                seen = np.asarray(plain)[..., :3].astype(np.float32)
                gamma = image.info.get("gamma")
                return _small(seen if gamma is None or profile or "srgb" in image.info else _encoded(seen, gamma))
    except Exception:  # another reader's troubles with a file are not what is measured here
        return None


def _encoded(stored: Array, gamma: float) -> Array:
    """Stored values whose file says gAMA (PNG 11.3.2.2), as sRGB (IEC 61966-2-1)."""
    light = (stored / 255) ** (1 / gamma)
    return np.asarray(np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055) * 255, np.float32)


def wrong_of(row: dict[str, str], picture: imagefile.Picture, data: bytes) -> list[str]:
    """What is wrong with a valid file's picture; empty: nothing."""
    wrong = []
    if (str(picture.width_px), str(picture.height_px)) != (row["width"], row["height"]):
        wrong.append("size")
    if not np.isfinite(picture.pixels).all():
        wrong.append("values")
    if imagefile.wholeness(io.BytesIO(data), len(data)).value == "partial":
        wrong.append("partial")
    return wrong


def valid() -> str:
    """The table of the valid half."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    unlike: list[str] = []
    for row in rows():
        if row["subset"] != "valid":
            continue
        data = (pages.CORPUS / row["file"]).read_bytes()
        side = 256 if row["status"] == "valid-huge" else 0
        picture = imagefile.decode(data, max_pixels=MOST_PIXELS, min_side_px=side)
        count = found[picture.format]
        count["all"] += 1
        count["right"] += not wrong_of(row, picture, data)
        other = by_pillow(data) if row["status"] != "valid-huge" else None
        if other is not None:
            count["compared"] += 1
            close = float(np.abs(grid(picture) - other).mean()) < CLOSE
            count["alike"] += close
            unlike += [] if close else [Path(row["file"]).name]
    lines = [
        f"{name} | {count['all']} | {count['right']} of {count['all']} | {count['alike']} of {count['compared']}"
        for name, count in sorted(found.items())
    ]
    total: Counter[str] = sum(found.values(), Counter())
    lines.append(
        f"**all** | {total['all']} | {total['right']} of {total['all']} | {total['alike']} of {total['compared']}"
    )
    table = pages.rows("format | valid files | right | colours as Pillow shows them", lines)
    return f"{table}\n\nOther colours than Pillow's: {', '.join(sorted(unlike)) or 'none'}."


def broken() -> str:
    """The table of the broken half."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows():
        if row["subset"] != "broken":
            continue
        try:
            picture = imagefile.decode((pages.CORPUS / row["file"]).read_bytes(), max_pixels=MOST_PIXELS)
        except FrameError as error:
            found[row["status"]][type(error).__name__] += 1
        else:
            name = "read" if picture.pixels.size else "nothing"
            found[row["status"]][f"{name}: {Path(row['file']).name}"] += 1
    lines = []
    for status, count in sorted(found.items()):
        refused = {key: value for key, value in count.items() if not key.startswith("read")}
        read = sorted(key.removeprefix("read: ") for key in count if key.startswith("read"))
        told = ", ".join(f"{value} {key}" for key, value in sorted(refused.items())) or "–"
        names = ", ".join(f"`{name}`" for name in read)
        lines.append(f"{status} | {sum(count.values())} | {told} | {f'{len(read)}: {names}' if read else '–'}")
    return pages.rows("kind | files | refused, by the error's name | read", lines)


def main() -> None:
    text = f"{valid()}\n\n{broken()}"
    print(text)
    pages.put(pages.DOCS / "formats.md", "corpus", text)


if __name__ == "__main__":
    main()
