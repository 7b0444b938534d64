"""Huge files that are real: within the memory limit, or refused with a reason. Each in a process of its own."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT

from watcher import imagefile

# What a child may grow by, in MB, for a picture whose 8-bit RGB samples take 3 bytes a pixel.
REDUCED_MB, WHOLE_MB = 300, 1500

CHILD = """
import sys
from pathlib import Path
from watcher import depth, loader
from watcher.config import Output
from watcher.errors import FrameError

def peak_mb(anew=False):
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

data = Path(sys.argv[1]).read_bytes()
before = peak_mb(anew=True)
try:
    found = loader.load(data, depth.Plan(256, 256), int(sys.argv[2]), Output())
    said = f"{found.width_px} {found.height_px}"
except FrameError as error:
    said = error.what
print(peak_mb() - before)
print(said)
"""


def loaded(path: Path, most_pixels: int = 400_000_000) -> tuple[float, str]:
    """(MB that loading the picture took at most, its size or why it was refused)."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(most_pixels)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        cwd=PROJECT,
    )
    grown, said = done.stdout.splitlines()
    return float(grown), said


linux = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


@linux
def test_a_jpeg_of_280_megapixels_takes_little(corpus: Path) -> None:
    """It is read reduced: a hundredth of the memory that all its pixels would take."""
    grown, said = loaded(corpus / "valid" / "giant_20000x14000.jpg")
    assert said == "20000 14000"
    assert grown < REDUCED_MB


@linux
def test_beyond_the_limit_nothing_is_allocated(corpus: Path) -> None:
    """One pixel more than `limits.max_pixels`: refused with the size, the limit and what to do, for nothing."""
    grown, said = loaded(corpus / "valid" / "giant_20000x14000.jpg", 20000 * 14000 - 1)
    assert "20000 x 14000 pixels" in said
    assert grown < 50


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", len(body) + 8) + kind + body


def full(kind: bytes, version_and_flags: int, *parts: bytes) -> bytes:
    return box(kind, struct.pack(">I", version_and_flags), *parts)


def grid_of(columns: int, rows: int, side: int = 512) -> bytes:
    """A HEIC as telephones make large ones: a grid of tiles (ISO/IEC 23008-12, 6.6.2.3), here all with one content."""
    import pillow_heif

    y, x = np.mgrid[0:side, 0:side]
    tile = np.stack([x // 4, y // 4, np.full_like(x, 90)], axis=-1).astype(np.uint8)
    out = io.BytesIO()
    pillow_heif.from_bytes("RGB", (side, side), tile.tobytes()).save(out, quality=60)
    single, at, payload = out.getvalue(), 0, b""
    while at < len(single):
        length = int.from_bytes(single[at : at + 4], "big")
        payload = single[at + 8 : at + length] if single[at + 4 : at + 8] == b"mdat" else payload
        at += length
    start = single.index(b"hvcC") - 4
    decoder = single[start : start + int.from_bytes(single[start : start + 4], "big")]
    count = columns * rows
    ids = range(2, count + 2)
    head = box(b"ftyp", b"heic", b"\0\0\0\0", b"mif1heic")
    place = struct.pack(">II", len(head) + 8, len(payload))
    shape = struct.pack(">BBBBII", 0, 1, rows - 1, columns - 1, columns * side, rows * side)
    entries = [full(b"infe", 2 << 24, struct.pack(">HH", 1, 0), b"grid\0")]
    entries += [full(b"infe", 2 << 24 | 1, struct.pack(">HH", each, 0), b"hvc1\0") for each in ids]
    where = [struct.pack(">HHHHII", 1, 1, 0, 1, 0, len(shape))]
    where += [struct.pack(">HHHH", each, 0, 0, 1) + place for each in ids]
    sizes = [full(b"ispe", 0, struct.pack(">II", *pair)) for pair in ((side, side), (columns * side, rows * side))]
    belongs = [struct.pack(">HBB", 1, 1, 3), *(struct.pack(">HBBB", each, 2, 0x81, 2) for each in ids)]
    meta = full(
        b"meta",
        0,
        full(b"hdlr", 0, bytes(4), b"pict", bytes(13)),
        full(b"pitm", 0, struct.pack(">H", 1)),
        full(b"iloc", 1 << 24, b"\x44\0", struct.pack(">H", count + 1), *where),
        full(b"iinf", 0, struct.pack(">H", count + 1), *entries),
        full(b"iref", 0, box(b"dimg", struct.pack(">HH", 1, count), *(struct.pack(">H", each) for each in ids))),
        box(
            b"iprp",
            box(b"ipco", decoder, *sizes),
            full(b"ipma", 0, struct.pack(">I", count + 1), *belongs),
        ),
        box(b"idat", shape),
    )
    return head + box(b"mdat", payload) + meta


def test_a_grid_shows_its_tiles() -> None:
    """The files of the next test are HEIC: a small grid comes out with its tiles side by side."""
    picture = imagefile.decode(grid_of(3, 2), max_pixels=10**7)
    assert (picture.width_px, picture.height_px) == (1536, 1024)
    left, right = picture.pixels[:512, :512], picture.pixels[512:, 1024:]
    assert np.abs(left.astype(int) - right).mean() < 1
    assert left[10, 400, 0] > left[10, 50, 0] + 40


@linux
def test_a_heic_of_200_megapixels_is_read(tmp_path: Path) -> None:
    """HEIC has no reduced reading, so it takes memory for all its pixels, and more; it is read all the same."""
    path = tmp_path / "huge.heic"
    path.write_bytes(grid_of(32, 24))
    grown, said = loaded(path)
    assert said == "16384 12288"
    assert grown < WHOLE_MB
