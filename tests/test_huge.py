"""Huge files that are real: within the memory limit, or refused with a reason. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT

# What a child may grow by, in MB, for a picture whose 8-bit RGB samples take 3 bytes a pixel.
REDUCED_MB, WHOLE_MB = 300, 2600

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


@linux
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_heic_of_200_megapixels_is_read(tmp_path: Path) -> None:
    """As telephones make it: a grid of tiles. HEIC has no reduced reading, so it takes all its pixels, some of them twice."""
    import pillow_heif

    width, height = 16320, 12240
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[..., 0] = (np.arange(width) // 64 % 200).astype(np.uint8)
    pixels[..., 1] = 100
    pixels[..., 2] = (np.arange(height) // 64 % 200).astype(np.uint8)[:, None]
    path = tmp_path / "huge.heic"
    made = pillow_heif.from_bytes("RGB", (width, height), pixels.tobytes())
    made.save(path, quality=20, tile_size=512, enc_params={"preset": "ultrafast"})
    del pixels, made
    grown, said = loaded(path)
    assert said == f"{width} {height}"
    assert grown < WHOLE_MB
