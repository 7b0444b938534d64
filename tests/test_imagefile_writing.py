"""Every map that is written can be read by somebody else, exactly, and says how it was made."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import cv2
import imagecodecs
import numpy as np
import OpenEXR  # type: ignore[import-not-found]
import pytest
import tifffile
from PIL import Image

from watcher import imagefile
from watcher.errors import UsageError

FACTS = {"model": "starter", "source.name": "Bäume 🌲 \n.jpg", "raw.min": "0.125", "near": "white"}
SHAPES = [(1, 1), (1, 300), (300, 1), (17, 33), (240, 321)]
Array = np.ndarray[Any, Any]


def depth_map(shape: tuple[int, int], fmt: str) -> Array:
    """(H, W) of the kind that the format takes: smooth with steps and the extreme values."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float32)
    values = (np.sin(x / 9) * np.cos(y / 7) + 1) / 2
    values[shape[0] // 2 :, shape[1] // 3 :] *= 0.5
    values.flat[0] = 1.0
    kind = {"png16": "uint16", "tiff16": "uint16", "png8": "uint8", "jpg": "uint8"}.get(fmt, "float32")
    return np.asarray(values if kind == "float32" else values * np.iinfo(kind).max).astype(kind)


def by_hand(data: bytes) -> Array:
    """A PNG decoder in a few lines, strict: every checksum, the one filter, nothing left over."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, stream, names = 8, b"", []
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + body)
        if name == b"IHDR":
            width, height, bits, kind, *rest = struct.unpack(">IIBBBBB", body)
            assert (kind, rest) == (0, [0, 0, 0])
        stream += body if name == b"IDAT" else b""
        names.append(name)
        at += 12 + length
    assert (names[0], names[-1]) == (b"IHDR", b"IEND")
    rows = np.frombuffer(zlib.decompress(stream), np.uint8).reshape(height, -1)
    assert set(rows[:, 0]) == {2}
    flat = np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8)
    return flat.view(f">u{bits // 8}").reshape(height, width)


def by_opencv(data: bytes) -> Array:
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


def by_others(data: bytes, fmt: str) -> list[Array]:
    """The map by every independent reader that knows the format."""
    if fmt.startswith("png"):
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            pillow = np.asarray(image)
        return [pillow, by_opencv(data), by_hand(data), np.asarray(imagecodecs.png_decode(data))]
    if fmt.startswith("tiff"):
        with Image.open(io.BytesIO(data)) as image:
            pillow = np.asarray(image)
        return [tifffile.imread(io.BytesIO(data)), pillow]
    if fmt == "exr":
        with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
            return [np.asarray(file.channels()["Z"].pixels)]
    if fmt == "npy":
        return [np.load(io.BytesIO(data))]
    return [by_opencv(data)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fmt", [fmt for fmt in imagefile.FORMATS if fmt != "jpg"])
def test_every_reader_gets_back_exactly_what_was_written(fmt: str, shape: tuple[int, int]) -> None:
    """No value changes, in any shape."""
    values = depth_map(shape, fmt)
    for found in by_others(imagefile.encode(values, fmt, FACTS), fmt):
        assert found.dtype.itemsize >= values.dtype.itemsize
        assert np.array_equal(found.reshape(shape), values)


@pytest.mark.parametrize("fmt", ["png16", "png8"])
@pytest.mark.parametrize("shape", [*SHAPES, (1080, 1920)])
def test_pngcheck_finds_nothing_wrong(fmt: str, shape: tuple[int, int], tmp_path: Path) -> None:
    """The checker of the format's own community has neither an error nor a warning, metadata and all."""
    checker = shutil.which("pngcheck")
    if checker is None:
        pytest.skip("pngcheck is not installed (apt-get install pngcheck, brew install pngcheck)")
    path = tmp_path / "map.png"
    path.write_bytes(imagefile.encode(depth_map(shape, fmt), fmt, FACTS))
    done = subprocess.run([checker, "-v", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "No errors detected" in done.stdout
    assert "warning" not in done.stdout.lower()
    path.write_bytes(path.read_bytes()[:-20])
    assert subprocess.run([checker, path], capture_output=True, check=False).returncode != 0


def test_a_jpeg_map_is_close() -> None:
    """JPEG loses a little, and no more."""
    values = depth_map((240, 321), "jpg")
    found = by_others(imagefile.encode(values, "jpg", FACTS), "jpg")[0]
    assert np.abs(found.astype(int) - values).mean() < 1.5


@pytest.mark.parametrize("fmt", [fmt for fmt in imagefile.FORMATS if fmt not in ("pfm", "npy")])
def test_facts_are_inside_and_come_back(fmt: str, tmp_path: Path) -> None:
    """Whatever the text, in every format that has a place for it."""
    path = tmp_path / f"map{imagefile.extension(fmt)}"
    path.write_bytes(imagefile.encode(depth_map((20, 30), fmt), fmt, FACTS))
    assert imagefile.read_facts(path) == FACTS


@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG"])
def test_a_picture_of_somebody_else_has_no_facts(name: str, tmp_path: Path) -> None:
    """Only maps that this program wrote answer."""
    path = tmp_path / "picture"
    Image.new("L", (8, 8)).save(path, name)
    assert imagefile.read_facts(path) is None


@pytest.mark.parametrize("data", [b"", b"hello", b"\x89PNG\r\n\x1a\n", b"\x76\x2f\x31\x01", b"II*\0\0\0"])
def test_facts_of_a_broken_file_are_none(data: bytes, tmp_path: Path) -> None:
    """Junk has no facts and raises nothing."""
    path = tmp_path / "junk"
    path.write_bytes(data)
    assert imagefile.read_facts(path) is None


def test_a_map_read_as_a_picture_keeps_its_values() -> None:
    """What was written as png16 comes back by decode, three equal channels, to the last bit."""
    values = depth_map((50, 70), "png16")
    pixels = imagefile.decode(imagefile.encode(values, "png16", {}), max_pixels=10_000).pixels
    for channel in range(3):
        assert np.array_equal(pixels[..., channel], values)


def test_a_slice_is_written_like_its_copy() -> None:
    """Arrays that are not contiguous, or not of the machine's byte order, are the same map."""
    whole = depth_map((64, 80), "png16")
    part = whole[::2, ::-3]
    assert imagefile.encode(part, "png16", {}) == imagefile.encode(part.copy(), "png16", {})
    assert np.array_equal(by_hand(imagefile.encode(part.astype(">u2"), "png16", {})), part)


def test_without_isal_the_same_map_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """isal only makes it faster."""
    values = depth_map((64, 80), "png16")
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    assert np.array_equal(by_hand(imagefile.encode(values, "png16", FACTS)), values)


def test_smooth_maps_become_small() -> None:
    """The filter earns its place: at most half the raw bytes for a smooth map."""
    values = cv2.resize(depth_map((48, 64), "png16"), (640, 480), interpolation=cv2.INTER_LINEAR)
    assert len(imagefile.encode(values, "png16", {})) < values.nbytes / 2


def test_what_cannot_be_written_is_refused() -> None:
    """Unknown formats are the user's mistake, wrong arrays the caller's: nothing is converted unseen."""
    with pytest.raises(UsageError, match="png16"):
        imagefile.encode(np.zeros((2, 2), np.uint16), "webm", {})
    with pytest.raises(UsageError, match="png16"):
        imagefile.extension("webm")
    for wrong in (np.zeros((2, 2), np.float32), np.zeros((2, 2, 3), np.uint16), np.zeros((0, 2), np.uint16)):
        with pytest.raises(ValueError, match="png16 takes"):
            imagefile.encode(wrong, "png16", {})


@pytest.mark.parametrize("colours", imagefile.COLOURS)
def test_a_preview_shows_near_brighter_than_far(colours: str) -> None:
    """Every colour table is a picture of the map's size whose ends differ; bad values do not matter."""
    ramp = np.tile(np.linspace(0, 1, 64, dtype=np.float32), (32, 1))
    ramp[0, 0] = np.nan
    for values in (ramp, (np.nan_to_num(ramp) * 65535).astype(np.uint16)):
        shown = imagefile.decode(imagefile.preview(values, colours), max_pixels=10_000)
        assert (shown.width_px, shown.height_px) == (64, 32)
        assert np.abs(shown.pixels[16, 2].astype(int) - shown.pixels[16, -3].astype(int)).sum() > 60
    with pytest.raises(UsageError, match="inferno"):
        imagefile.preview(ramp, "jet")


def test_a_contact_sheet_has_a_row_for_each_pair() -> None:
    """Pictures left, maps right, equally large, whatever their sizes were."""
    red = np.zeros((40, 60, 3), np.uint8)
    red[..., 0] = 255
    white = np.full((20, 30), 65535, np.uint16)
    sheet = imagefile.decode(imagefile.contact_sheet([(red, white)] * 3, 300), max_pixels=10**6)
    one = imagefile.decode(imagefile.contact_sheet([(red, white)], 300), max_pixels=10**6)
    assert abs(sheet.width_px - 300) <= 1
    assert sheet.height_px - one.height_px == 2 * (one.height_px - 12)
    middle = one.height_px // 2
    assert one.pixels[middle, 75, 0] > 240
    assert one.pixels[middle, 75, 1] < 20
    assert one.pixels[middle, 225].min() > 240
