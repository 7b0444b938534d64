"""Every kind of picture comes out upright, of the right size and colour, whatever its name says."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from imagefile_samples import HEIGHT, MADE, WIDTH, exif, heic, saved, scene, tiff
from PIL import Image, ImageCms, PngImagePlugin

from watcher import imagefile
from watcher.errors import FrameError
from watcher.imagefile import jpeg
from watcher.imagefile.picture import Limits

MOST = 400_000_000
Array = np.ndarray[Any, Any]
LINEAR = ("pfm", "hdr", "exr")  # these pass through a display transform
FORWARD: dict[
    int, Callable[[Array], Array]
] = {  # what a camera stores so that turning it by this EXIF value gives the upright picture
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: np.swapaxes(a, 0, 1),
    6: np.rot90,
    7: lambda a: np.rot90(np.swapaxes(a, 0, 1), 2),
    8: lambda a: np.rot90(a, -1),
}


def as_bytes(picture: imagefile.Picture) -> np.ndarray[Any, Any]:
    """Pixels of any depth as 0..255 float."""
    full = {"uint8": 1.0, "uint16": 257.0, "float32": 1 / 255}[picture.pixels.dtype.name]
    return picture.pixels.astype(np.float64) / full


def distance(picture: imagefile.Picture, expected: np.ndarray[Any, Any]) -> float:
    assert picture.pixels.shape == expected.shape
    return float(np.abs(as_bytes(picture) - expected).mean())


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in LINEAR])
def test_every_kind_shows_the_same_picture(kind: str) -> None:
    """Size and colours are those that were saved."""
    picture = imagefile.decode(MADE[kind](), max_pixels=MOST)
    gray = picture.pixels[..., 0] is not None and np.array_equal(picture.pixels[..., 0], picture.pixels[..., 2])
    expected = np.repeat(scene()[..., 1:2], 3, axis=2) if gray else scene()
    assert (picture.width_px, picture.height_px) == (WIDTH, HEIGHT)
    assert distance(picture, expected) < 4
    assert picture.pixels.flags.c_contiguous


@pytest.mark.parametrize("kind", LINEAR)
def test_linear_pictures_keep_their_order_of_brightness(kind: str) -> None:
    """Linear light becomes brighter in the display transform, never reversed or turned."""
    picture = imagefile.decode(MADE[kind](), max_pixels=MOST)
    green = picture.pixels[..., 1]
    assert picture.pixels.dtype == np.float32
    assert 0 <= float(green.min()) < float(green.max()) <= 1
    assert np.corrcoef(green.ravel(), scene()[..., 1].ravel())[0, 1] > 0.95


@pytest.mark.parametrize("turn", FORWARD)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_all_eight_orientations_come_out_upright(kind: str, turn: int) -> None:
    """The orientation is applied, once, in every format that can carry one."""
    stored = np.ascontiguousarray(FORWARD[turn](scene()))
    if kind == "TIFF":
        data = tiff(stored, photometric="rgb", extratags=[(274, 3, 1, turn, True)])
    else:
        data = saved(stored, kind, exif=exif(turn), **({"quality": 97} if kind != "PNG" else {}))
    picture = imagefile.decode(data, max_pixels=MOST)
    assert (picture.width_px, picture.height_px) == (WIDTH, HEIGHT)
    assert picture.orientation == turn
    assert distance(picture, scene()) < 4


@pytest.mark.parametrize("turn", [1, 3, 6, 8])
def test_heic_is_turned_once(turn: int) -> None:
    """A HEIC that is turned by its own property and names the same in EXIF is not turned twice."""
    data = heic(np.ascontiguousarray(FORWARD[turn](scene())), quality=97, exif=exif(turn))
    assert distance(imagefile.decode(data, max_pixels=MOST), scene()) < 4


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("turn", [0, 9, 4711])
def test_an_orientation_out_of_range_is_none(turn: int, order: str) -> None:
    """Values that mean nothing leave the picture as it is."""
    assert imagefile.decode(saved(scene(), "JPEG", exif=exif(turn, order)), max_pixels=MOST).orientation == 1


@pytest.mark.parametrize("side", [1, 8, 20, 64, 500])
@pytest.mark.parametrize("kind", MADE)
def test_reduced_pictures_keep_enough_pixels_and_say_the_full_size(kind: str, side: int) -> None:
    """min_side_px: both sides keep at least that many pixels, and the source's size is still told."""
    picture = imagefile.decode(MADE[kind](), max_pixels=MOST, min_side_px=side)
    assert min(picture.pixels.shape[:2]) >= min(side, HEIGHT)
    assert (picture.width_px, picture.height_px) == (WIDTH, HEIGHT)
    if side == 8:
        assert picture.pixels.shape[0] < HEIGHT


@pytest.mark.parametrize("size", [(1365, 2048), (2999, 3999), (1061, 1415), (517, 511)])
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_odd_sides_are_reduced_by_the_decoder_too(size: tuple[int, int], scale: int) -> None:
    """A JPEG whose sides do not divide by the scale comes from libjpeg at that scale, not larger or in full."""
    data = saved(np.resize(scene(), (*size, 3)), "JPEG")
    stored = jpeg.read(data, Limits(max_pixels=MOST, min_side_px=min(size) // scale))
    assert stored.samples.shape[:2] == (-(-size[0] // scale), -(-size[1] // scale))
    assert (stored.height, stored.width) == size


def test_a_reduced_jpeg_is_the_mean_of_the_full_one() -> None:
    """Reduction averages; it neither shifts nor recolours."""
    big = np.repeat(np.repeat(scene(), 16, axis=0), 16, axis=1)
    picture = imagefile.decode(saved(big, "JPEG", quality=97), max_pixels=MOST, min_side_px=64)
    assert picture.pixels.shape == scene().shape
    assert distance(picture, scene()) < 2


@pytest.mark.parametrize("kind", ["png 16", "tiff tiled 16"])
def test_sixteen_bits_stay_sixteen_bits(kind: str) -> None:
    """Nothing between the file and the network rounds to 8 bits."""
    picture = imagefile.decode(MADE[kind](), max_pixels=MOST)
    assert picture.pixels.dtype == np.uint16
    assert picture.bits == 16


@pytest.mark.parametrize("name", ["PNG", "WEBP", "TIFF"])
def test_alpha_is_handed_on_and_the_colours_below_stay(name: str) -> None:
    """Alpha never touches the colours."""
    alpha = np.tile(np.linspace(0, 255, WIDTH, dtype=np.uint8), (HEIGHT, 1))
    rgba = np.dstack((scene(), alpha))
    options: dict[str, Any] = {"lossless": True, "exact": True} if name == "WEBP" else {}
    picture = imagefile.decode(saved(rgba, name, **options), max_pixels=MOST)
    assert np.array_equal(picture.pixels, scene())
    assert picture.alpha is not None
    assert np.array_equal(picture.alpha, alpha)


def test_a_wide_profile_is_converted_and_srgb_is_left_alone() -> None:
    """The same numbers under a linear gray profile become brighter; under sRGB they stay."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    plain = imagefile.decode(saved(scene(), "PNG", icc_profile=srgb), max_pixels=MOST)
    assert np.array_equal(plain.pixels, scene())
    assert not plain.notes


@pytest.mark.parametrize("gamma", [1.0, 0.45455])
def test_png_gamma_is_honoured(gamma: float) -> None:
    """gAMA 1.0 is linear light (18 percent grey becomes middle grey); gAMA 0.45455 is what everybody assumes."""
    info = PngImagePlugin.PngInfo()
    info.add(b"gAMA", round(gamma * 100_000).to_bytes(4, "big"))
    data = saved(np.full((4, 4, 3), 46, np.uint8), "PNG", pnginfo=info)
    value = int(imagefile.decode(data, max_pixels=MOST).pixels[0, 0, 0])
    assert value == (46 if gamma < 1 else 118)


def test_a_cmyk_jpeg_has_the_colours_of_its_inks() -> None:
    """Cyan ink is cyan, not red."""
    image = Image.new("CMYK", (16, 16), (255, 0, 0, 0))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=95)
    red, green, blue = imagefile.decode(out.getvalue(), max_pixels=MOST).pixels[8, 8]
    assert red < 10
    assert min(green, blue) > 245


@pytest.mark.parametrize("name", ["GIF", "WEBP", "TIFF", "PNG"])
def test_the_first_of_several_frames_is_read_and_said(name: str) -> None:
    """Animations and pages give their first picture and a note."""
    out = io.BytesIO()
    frames = [Image.fromarray(np.full((20, 30, 3), value, np.uint8)) for value in (40, 200, 90)]
    frames[0].save(out, name, save_all=True, append_images=frames[1:])
    picture = imagefile.decode(out.getvalue(), max_pixels=MOST)
    assert abs(int(picture.pixels[5, 5, 0]) - 40) < 6
    assert any("first of 3" in note or "animation" in note for note in picture.notes)


def test_content_decides_not_the_name() -> None:
    """A name only claims; any case and trailing spaces count as the same claim."""
    for name in ("x.jpg ", "HOLIDAY.JPG", "a.b.TiFf", "IMG_1.heic"):
        assert imagefile.claims_picture(name)
    for name in ("notes.txt", "jpg", ".jpg", "movie.mov", ""):
        assert not imagefile.claims_picture(name)
    assert imagefile.sniff(MADE["png"]()[:64]) == "png"
    assert imagefile.sniff(b"hello") is None


def test_eight_threads_decode_at_once() -> None:
    """Readers share nothing."""
    data = {kind: make() for kind, make in MADE.items()}
    alone = {kind: imagefile.decode(each, max_pixels=MOST).pixels for kind, each in data.items()}
    wrong: list[str] = []

    def run() -> None:
        for kind, each in data.items():
            if not np.array_equal(imagefile.decode(each, max_pixels=MOST).pixels, alone[kind]):
                wrong.append(kind)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def rows(corpus: Path) -> list[dict[str, str]]:
    lines = (corpus / "MANIFEST.tsv").read_text("utf-8").splitlines()
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def test_every_valid_file_of_the_corpus_comes_out_right(corpus: Path) -> None:
    """Upright size as the manifest says, three channels, finite, and its structure is never called partial."""
    wrong = []
    valid = [row for row in rows(corpus) if row["subset"] == "valid"]
    for row in valid:
        data = (corpus / row["file"]).read_bytes()
        side = 256 if row["status"] == "valid-huge" else 0
        picture = imagefile.decode(data, max_pixels=MOST, min_side_px=side)
        size = str(picture.width_px), str(picture.height_px)
        partial = imagefile.wholeness(io.BytesIO(data), len(data)).value == "partial"
        if size != (row["width"], row["height"]) or partial or not np.isfinite(picture.pixels).all():
            wrong.append((row["file"], size, partial))
    assert len(valid) > 50
    assert not wrong


def test_the_rotated_photographs_of_the_corpus_are_one_photograph(corpus: Path) -> None:
    """Landscape_4 to _8 show the same picture upright."""
    found = [
        imagefile.decode((corpus / f"valid/Landscape_{turn}.jpg").read_bytes(), max_pixels=MOST).pixels
        for turn in (4, 5, 6, 7, 8)
    ]
    for other in found[1:]:
        assert np.abs(other.astype(int) - found[0]).mean() < 6


def test_no_broken_file_of_the_corpus_is_taken_for_whole(corpus: Path) -> None:
    """Truncated, empty, non-picture and bomb files raise an error of the tree; the rest gives an answer."""
    accepted, silent = [], []
    for row in rows(corpus):
        if row["subset"] != "broken":
            continue
        try:
            imagefile.decode((corpus / row["file"]).read_bytes(), max_pixels=MOST)
        except FrameError as error:
            silent += [] if error.what and error.remedy else [row["file"]]
        else:
            accepted.append((row["status"], row["file"]))
    assert not silent
    never = {"truncated", "empty", "not-image", "not-raster", "nonfinite"}
    assert not [entry for entry in accepted if entry[0] in never]
    assert [name for status, name in accepted if status == "bomb"] == [
        "broken/decompression_bomb_extents.gif",
        "broken/png_ztxt_bomb.png",
    ]


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "LAB", "P", "L", "1", "LA"])
def test_every_colour_space_of_tiff_is_understood(mode: str) -> None:
    """TIFF keeps many kinds of colour; each shows what an independent reader shows."""
    image = Image.fromarray(scene())
    image = image if mode == "LAB" else image.convert(mode)
    out = io.BytesIO()
    image.save(out, "TIFF")
    with Image.open(io.BytesIO(out.getvalue())) as again:
        expected = np.asarray(again.convert("RGB"))
    assert distance(imagefile.decode(out.getvalue(), max_pixels=MOST), expected) < 1


@pytest.mark.parametrize(
    "options", [{"compression": "lzw", "predictor": True}, {"compression": "zstd"}, {"tile": (16, 16)}]
)
def test_every_layout_of_tiff_is_understood(options: dict[str, Any]) -> None:
    """However the strips or tiles are packed."""
    assert distance(imagefile.decode(tiff(scene(), photometric="rgb", **options), max_pixels=MOST), scene()) == 0


def test_separate_planes_are_put_together() -> None:
    """A planar TIFF has its colours one after the other."""
    planes = np.ascontiguousarray(np.moveaxis(scene(), -1, 0))
    data = tiff(planes, photometric="rgb", planarconfig="separate")
    assert distance(imagefile.decode(data, max_pixels=MOST), scene()) == 0


def test_wide_integers_that_hold_small_values_are_not_black() -> None:
    """16-bit values kept in 32 bits keep their brightness."""
    values = scene()[..., 1].astype(np.int32) * 257
    picture = imagefile.decode(tiff(values), max_pixels=MOST)
    assert np.array_equal(picture.pixels[..., 0], values)


def test_a_raw_file_shows_its_largest_preview() -> None:
    """A DNG is not developed: the preview inside is used, and it is said."""
    out = io.BytesIO()
    with tifffile.TiffWriter(out) as writer:
        small = np.ascontiguousarray(scene()[::4, ::4])
        version = [(50706, 1, 4, b"\1\4\0\0", True)]
        writer.write(small, photometric="rgb", subifds=2, subfiletype=1, extratags=version, metadata=None)
        cfa = [(33421, 3, 2, (2, 2), False), (33422, 1, 4, b"\0\1\1\2", False)]
        writer.write(np.zeros((128, 192), np.uint16), photometric="cfa", extratags=cfa, metadata=None)
        writer.write(scene(), photometric="rgb", subfiletype=1, metadata=None)
    picture = imagefile.decode(out.getvalue(), max_pixels=MOST)
    assert distance(picture, scene()) == 0
    assert picture.notes == ("preview of a raw file",)
