"""Readers: what each candidate library makes of each format by itself, how fast and in how much memory.

``python -m bench.readers`` writes the table of docs/formats.md. A cell: files of the corpus whose upright size and
colours (means of 8 x 8 blocks) come out as they should, of all valid ones; then for a picture of 12 megapixels
milliseconds (the best of three) and megabytes (what the process grew by at most; Linux only), each in a process of its
own. pyvips is no dependency: where it is not installed, its column is empty.
"""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from bench import pages, pictures
from bench.corpus import CLOSE, GRID, MOST_PIXELS, grid, rows
from watcher import imagefile

Array = NDArray[Any]
SIZE = (4000, 3000)
_CODECS = {"jpeg": "jpeg8", "png": "png", "webp": "webp", "avif": "avif", "heif": "heif", "jp2": "jpeg2k"}
_CODECS |= {"bmp": "bmp", "gif": "gif"}


def opencv(data: bytes, _name: str) -> Array:
    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH)
    if found is None:
        raise ValueError("not read")
    return np.asarray(found)[..., ::-1]


def pillow(data: bytes, _name: str) -> Array:
    import pillow_heif
    from PIL import Image, ImageOps

    pillow_heif.register_heif_opener()
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def codecs(data: bytes, name: str) -> Array:
    import imagecodecs
    import tifffile

    if name == "tiff":
        return np.asarray(tifffile.imread(io.BytesIO(data), key=0))
    return np.asarray(getattr(imagecodecs, f"{_CODECS[name]}_decode")(data))


def vips(data: bytes, _name: str) -> Array:
    pyvips = importlib.import_module("pyvips")
    image = pyvips.Image.new_from_buffer(data, "").autorot()
    wanted = "rgb16" if image.format == "ushort" else "srgb"
    return np.asarray(image.colourspace(wanted).numpy())


def openexr(data: bytes, name: str) -> Array:
    import OpenEXR  # type: ignore[import-not-found]

    if name != "exr":
        raise ValueError("EXR only")
    with OpenEXR.File(io.BytesIO(data)) as file:
        channels = file.channels()
        return np.array(channels[next(key for key in ("RGB", "RGBA", "Y", *channels) if key in channels)].pixels)


CANDIDATES: dict[str, tuple[Callable[[bytes, str], Array], tuple[str, ...]]] = {
    "OpenCV": (opencv, ("cv2",)),
    "Pillow + pillow-heif": (pillow, ("PIL", "pillow_heif")),
    "tifffile + imagecodecs": (codecs, ("tifffile", "imagecodecs")),
    "pyvips": (vips, ("pyvips",)),
    "OpenEXR": (openexr, ("OpenEXR",)),
}
CHOSEN = {
    "jpeg": "Pillow (reports what is missing; reads reduced)",
    "png": "OpenCV; Pillow for palettes",
    "tiff": "tifffile + imagecodecs",
    "heif": "pillow-heif",
    "avif": "Pillow; imagecodecs above 8 bits",
    "webp": "Pillow",
    "jp2": "Pillow; imagecodecs above 8 bits",
    "exr": "OpenEXR",
    "gif": "Pillow",
    "bmp": "Pillow",
    "psd": "Pillow; by hand at 16 bits",
    "pnm": "by hand",
}


def right(name: str, seen: Array, row: dict[str, str], expected: Array) -> bool:
    """Whether a library's own picture has the size and the colours that it should have."""
    if seen.shape[:2] != (int(row["height"]), int(row["width"])):
        return False
    plain = seen[..., None] if seen.ndim == 2 else seen
    plain = plain[..., [0, 0, 0]] if plain.shape[2] < 3 else plain[..., :3]
    if plain.dtype.kind == "f":
        return name == "exr"  # light of any scale: only the size can be told
    full = {"uint8": 1.0, "uint16": 257.0}.get(plain.dtype.name)
    if full is None:
        return False
    small = cv2.resize(plain.astype(np.float32) / np.float32(full), (GRID, GRID), interpolation=cv2.INTER_AREA)
    return float(np.abs(small - expected).mean()) < CLOSE


def counted() -> dict[str, dict[str, list[bool]]]:
    """format → candidate → for each valid file: is it right?"""
    found: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows():
        if row["subset"] != "valid" or row["status"] == "valid-huge":
            continue
        data = (pages.CORPUS / row["file"]).read_bytes()
        picture = imagefile.decode(data, max_pixels=MOST_PIXELS)
        for name, (read, modules) in CANDIDATES.items():
            if importable(modules):
                found[picture.format][name].append(_is_right(picture.format, read, data, row, grid(picture)))
    return found


def _is_right(
    name: str, read: Callable[[bytes, str], Array], data: bytes, row: dict[str, str], expected: Array
) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return right(name, read(data, name), row, expected)
    except Exception:  # that a library does not read a file is what is counted
        return False


def importable(modules: tuple[str, ...]) -> bool:
    try:
        return all(importlib.import_module(name) for name in modules)
    except (ImportError, OSError):
        return False


# -- speed and memory ------------------------------------------------------------------------------------------------


def samples(place: Path) -> dict[str, Path]:
    """One picture of 12 megapixels in each format that something here can write."""
    import pillow_heif
    from PIL import Image

    pixels = pictures.pixels(*SIZE)
    image = Image.fromarray(pixels)
    pillow_heif.register_heif_opener()
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "jpeg": ("JPEG", {"quality": 92}),
        "png": ("PNG", {"compress_level": 1}),
        "tiff": ("TIFF", {"compression": "tiff_lzw"}),
        "webp": ("WEBP", {"quality": 90, "method": 0}),
        "heif": ("HEIF", {"quality": 80}),
        "avif": ("AVIF", {"quality": 80, "speed": 10}),
        "jp2": ("JPEG2000", {"irreversible": True, "quality_mode": "rates", "quality_layers": [10]}),
        "bmp": ("BMP", {}),
    }
    made = {}
    for name, (fmt, options) in kinds.items():
        made[name] = place / name
        image.save(made[name], fmt, **options)
    made["exr"] = place / "exr"
    made["exr"].write_bytes(imagefile.encode(pixels[..., 0].astype(np.float32), "exr", {}))
    return made


def timed(candidate: str, name: str, path: Path) -> str:
    """``ms, MB`` of one candidate and picture, in a process of its own; empty where it does not read it."""
    words = [sys.executable, "-m", "bench.readers", candidate, name, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def child(candidate: str, name: str, path: str) -> None:
    """What ``timed`` starts."""
    read, modules = CANDIDATES[candidate]
    if not importable(modules):
        raise SystemExit(1)
    read((pages.DOCS / "pictures" / "outputs.jpg").read_bytes(), "jpeg") if candidate not in ("OpenEXR",) else None
    data = Path(path).read_bytes()
    before = _peak_kb(anew=True)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        seen = read(data, name)
        took.append(time.perf_counter() - began)
        assert seen.shape[:2] == SIZE[::-1]
        del seen
    grown = _peak_kb() - before
    print(f"{min(took) * 1000:.0f} ms, {grown / 1024:.0f} MB")


def _peak_kb(*, anew: bool = False) -> int:
    """The most memory that this process held; ``anew``: counted from now on (proc(5), clear_refs)."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def table() -> str:
    found = counted()
    lines = []
    with tempfile.TemporaryDirectory() as place:
        large = samples(Path(place))
        for name, chosen in CHOSEN.items():
            cells = []
            for candidate in CANDIDATES:
                files = found[name].get(candidate, [])
                pace = timed(candidate, name, large[name]) if name in large and any(files) else ""
                cells.append(f"{sum(files)} of {len(files)}" + (f"; {pace}" if pace else "") if any(files) else "–")
            lines.append(" | ".join([f"`{name}`", *cells, chosen]))
    return pages.rows(" | ".join(["format", *CANDIDATES, "chosen"]), lines)


def main() -> None:
    if len(sys.argv) == 4:
        child(*sys.argv[1:])
        return
    text = table()
    print(text)
    pages.put(pages.DOCS / "formats.md", "readers", text)


if __name__ == "__main__":
    main()
