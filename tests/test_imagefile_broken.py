"""What is not all there is said to be so, whatever the decoder would have painted."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import numpy as np
import pytest
from imagefile_samples import MADE, saved, scene
from PIL import Image

from watcher import imagefile
from watcher.errors import Corrupt, FrameError, NotAPicture, TooLarge, Truncated, Unsupported
from watcher.frame import Wholeness
from watcher.imagefile import jpeg, jpeg_scans, reading
from watcher.imagefile.picture import Stored

MOST = 10_000_000
# A text header may be cut so early that the beginning is no longer recognised, which is a refusal as well.
CUT = (Truncated, Corrupt, NotAPicture)


def verdict(data: bytes) -> Wholeness:
    return imagefile.wholeness(io.BytesIO(data), len(data))


@pytest.mark.parametrize("kind", MADE)
def test_a_cut_picture_is_never_returned(kind: str) -> None:
    """A file cut at any of twenty places raises, and its structure never calls itself whole."""
    data = MADE[kind]()
    imagefile.decode(data, max_pixels=MOST)
    for part in range(20):
        cut = data[: len(data) * part // 20]
        with pytest.raises(CUT):
            imagefile.decode(cut, max_pixels=MOST)
        assert verdict(cut) is not Wholeness.WHOLE


@pytest.mark.parametrize("kind", MADE)
def test_a_few_missing_bytes_are_missed(kind: str) -> None:
    """Even when only the last bytes are missing."""
    data = MADE[kind]()
    with pytest.raises((Truncated, Corrupt)):
        imagefile.decode(data[:-9], max_pixels=MOST)
    assert verdict(data[:-9]) is not Wholeness.WHOLE


@pytest.mark.parametrize("kind", ["jpeg", "jpeg progressive", "png", "webp", "heic", "avif", "jp2", "gif"])
def test_a_tail_of_zeros_is_a_copy_that_is_not_finished(kind: str) -> None:
    """Preallocated space that was never filled counts as missing, although decoders accept it."""
    data = MADE[kind]()
    half = data[: len(data) // 2] + b"\0" * max(600, len(data) - len(data) // 2)
    assert verdict(half) is Wholeness.PARTIAL
    with pytest.raises((Truncated, Corrupt)):
        imagefile.decode(half, max_pixels=MOST)


def test_an_end_mark_does_not_make_a_jpeg_complete() -> None:
    """A scan that ran out before its picture did is found, also when somebody put the end mark back."""
    data = saved(scene(), "JPEG", quality=95)
    with pytest.raises(Truncated):
        imagefile.decode(data[: len(data) * 6 // 10] + b"\xff\xd9", max_pixels=MOST)


JPEGS: dict[str, dict[str, Any]] = {
    "one scan": {"quality": 90},
    "colour as fine as light": {"quality": 90, "subsampling": 0},
    "progressive": {"quality": 90, "progressive": True},
    "restart markers": {"quality": 90, "restart_marker_blocks": 5},
    "progressive with restart markers": {"quality": 90, "progressive": True, "restart_marker_rows": 1},
}


def photograph() -> np.ndarray[Any, Any]:
    """(306, 411, 3) uint8: sides that are no multiple of a block, detail everywhere, a corner that is not flat."""
    large = np.asarray(Image.fromarray(scene()).resize((411, 306), Image.Resampling.BICUBIC), np.uint8)
    grain = np.random.default_rng(2).integers(0, 16, large.shape, np.uint8)
    return np.asarray(large ^ grain)


@pytest.mark.parametrize("kind", JPEGS)
@pytest.mark.parametrize("side", [0, 64])
def test_a_forged_end_is_found_wherever_the_scans_were_cut(kind: str, side: int) -> None:
    """Decoders paint what is missing without a word, gray or coarse; a cut anywhere but in the last block is found.

    Reduced, a cut is found that changes what is read.
    """
    data = saved(photograph(), "JPEG", **JPEGS[kind])
    whole = imagefile.decode(data, max_pixels=MOST, min_side_px=side).pixels
    for part in np.linspace(0.1, 0.99, 30):
        cut = data[: int(len(data) * part)].rstrip(b"\xff") + b"\xff\xd9"
        assert verdict(cut) is Wholeness.WHOLE
        try:
            found = imagefile.decode(cut, max_pixels=MOST, min_side_px=side).pixels
        except (Truncated, Corrupt):
            continue
        assert side, part
        assert np.array_equal(found, whole)


@pytest.mark.parametrize("kind", JPEGS)
def test_a_cut_behind_the_first_byte_of_a_pair_is_found(kind: str) -> None:
    """0xFF and what follows belong together; a cut between them must not hide behind the forged end mark."""
    data = saved(photograph(), "JPEG", **JPEGS[kind])
    places = [at + 1 for at in range(len(data) // 5, len(data) * 95 // 100) if data[at] == 0xFF]
    assert len(places) > 20
    for cut in places[:: len(places) // 20]:
        with pytest.raises((Truncated, Corrupt)):
            imagefile.decode(data[:cut] + b"\xff\xd9", max_pixels=MOST)


@pytest.mark.parametrize("at_once", [1, 2, 7, 1 << 20])
def test_markers_are_found_wherever_the_data_is_parted(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as reading byte after byte: 0xFF, fill bytes, then neither a zero nor another 0xFF."""
    monkeypatch.setattr(jpeg_scans, "_AT_ONCE_BYTES", at_once)
    random = np.random.default_rng(4)
    for _ in range(20):
        data = random.choice([0xFF, 0x00, 0xD0, 0xDA, 0x17], 60).astype(np.uint8).tobytes()
        wanted = [at for at in range(1, 60) if data[at - 1] == 0xFF and data[at] not in (0x00, 0xFF)]
        assert list(jpeg_scans._markers(data)) == wanted


def test_a_picture_with_detail_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four equal pixels in a corner are not yet an end that ran out; a flat block is."""
    decoded: list[int] = []

    def count(clean: bytes, factor: int) -> np.ndarray[Any, Any]:
        decoded.append(factor)
        return ends

    monkeypatch.setattr(jpeg, "_decode", count)
    data = saved(np.zeros((96, 128, 3), np.uint8), "JPEG")
    for flat_rows, times in ((1, 1), (16, 2)):
        ends = np.random.default_rng(1).integers(0, 255, (96, 128, 3), np.uint8)
        ends[-flat_rows:, -16:] = 90
        decoded.clear()
        imagefile.decode(data, max_pixels=MOST)
        assert len(decoded) == times


def test_a_progressive_jpeg_without_its_last_scan_is_truncated() -> None:
    """Cut exactly between two scans nothing is broken, but the finer bits were promised."""
    data = saved(photograph(), "JPEG", quality=90, progressive=True)
    with pytest.raises(Truncated, match="not all of its scans"):
        imagefile.decode(data[: data.rindex(b"\xff\xda")] + b"\xff\xd9", max_pixels=MOST)


def test_a_piece_lost_from_the_middle_is_corrupt() -> None:
    """Restart markers are counted: a decoder goes on after a lost piece as if nothing had been there."""
    data = saved(photograph(), "JPEG", quality=90, restart_marker_rows=1)
    first, after = data.index(b"\xff\xd2"), data.index(b"\xff\xd4")
    with pytest.raises(Corrupt, match="2 of 20 pieces"):
        imagefile.decode(data[:first] + data[after:], max_pixels=MOST)


def test_a_jpeg_of_endless_scans_is_refused() -> None:
    """Each scan costs a pass over the whole picture; thousands of them are no photograph."""
    data = saved(photograph(), "JPEG", quality=90, progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(Corrupt, match="scans"):
        imagefile.decode(data[:-2] + last * 600 + b"\xff\xd9", max_pixels=MOST)


@pytest.mark.parametrize("value", [0, 77, 255])
def test_a_flat_picture_is_not_taken_for_a_cut_one(value: int) -> None:
    """The check for short scans lets constant pictures pass, whole and reduced."""
    data = saved(np.full((64, 96, 3), value, np.uint8), "JPEG")
    for side in (0, 8):
        assert np.ptp(imagefile.decode(data, max_pixels=MOST, min_side_px=side).pixels) == 0


@pytest.mark.parametrize("kind", MADE)
def test_damage_inside_ends_in_an_answer(kind: str) -> None:
    """Changed bytes anywhere give a picture or an error of the tree, nothing else."""
    data = bytearray(MADE[kind]())
    random = np.random.default_rng(3)
    for _ in range(30):
        damaged = bytearray(data)
        for at in random.integers(0, len(data), 4):
            damaged[at] = int(random.integers(0, 256))
        with contextlib.suppress(FrameError):
            assert imagefile.decode(bytes(damaged), max_pixels=MOST).pixels.size
        assert verdict(bytes(damaged)) in Wholeness


@pytest.mark.parametrize("kind", MADE)
def test_whole_files_are_not_called_partial(kind: str) -> None:
    """A complete file never waits; those with an end mark say that they are whole."""
    data = MADE[kind]()
    marked = not kind.startswith(("tiff", "p", "hdr", "exr")) or kind.startswith("png")
    assert verdict(data) is (Wholeness.WHOLE if marked else Wholeness.UNKNOWN)


def test_bytes_after_the_end_leave_a_jpeg_undecided() -> None:
    """What follows the end mark is nobody's, so the structure cannot tell."""
    assert verdict(MADE["jpeg"]() + b"appended by somebody") is Wholeness.UNKNOWN


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<!DOCTYPE html><html>login", "HTML"),
        (b'{"error": "not found"}', "JSON"),
        (b"dear diary, today I saw a mountain", "text"),
        (b"<?xml version='1.0'?><svg/>", "SVG"),
        (b"%PDF-1.7 something", "PDF"),
    ],
)
def test_what_is_no_picture_is_named(data: bytes, said: str) -> None:
    """The refusal says what the file is instead."""
    with pytest.raises(NotAPicture, match=said):
        imagefile.decode(data, max_pixels=MOST)
    assert verdict(data) is Wholeness.UNKNOWN


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"\0" * 4096])
def test_nothing_yet_is_partial(data: bytes) -> None:
    """An empty, just begun or all-zero file may still be growing."""
    assert verdict(data) is Wholeness.PARTIAL
    with pytest.raises(Truncated):
        imagefile.decode(data, max_pixels=MOST)


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind != "gif"])
def test_the_limit_is_the_settings_limit(kind: str) -> None:
    """One pixel more than allowed is refused, exactly as many are not."""
    data = MADE[kind]()
    imagefile.decode(data, max_pixels=96 * 64)
    with pytest.raises(TooLarge, match="limit"):
        imagefile.decode(data, max_pixels=96 * 64 - 1)


def test_a_bomb_is_refused_whatever_the_limit() -> None:
    """A header that claims thousands of pixels a byte is not believed, even below max_pixels."""
    bomb = re.sub(rb"96 64", b"16383 16383", MADE["ppm"](), count=1)[:2000]
    with pytest.raises(TooLarge, match="memory"):
        imagefile.decode(bomb, max_pixels=400_000_000)


def test_a_twelve_bit_jpeg_is_refused_with_a_way_out() -> None:
    """What cannot be read says so and what to do."""
    data = bytearray(MADE["jpeg"]())
    at = data.index(b"\xff\xc0")
    data[at + 4] = 12
    with pytest.raises(Unsupported, match="12-bit"):
        imagefile.decode(bytes(data), max_pixels=MOST)


def test_a_picture_of_nothing_but_nan_is_corrupt() -> None:
    """Not a number anywhere: there is nothing to see."""
    data = imagefile.encode(np.full((8, 8), np.nan, np.float32), "tiff32f", {})
    with pytest.raises(Corrupt):
        imagefile.decode(data, max_pixels=MOST)


def test_some_nan_and_infinity_are_replaced_and_counted() -> None:
    """Single bad values do not reach the network."""
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    values[0, 0], values[0, 1] = np.nan, np.inf
    picture = imagefile.decode(imagefile.encode(values, "tiff32f", {}), max_pixels=MOST)
    assert np.isfinite(picture.pixels).all()
    assert any(note.startswith("2 values") for note in picture.notes)


def test_a_picture_that_contradicts_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decodes to another size than its header says is refused, or its map would have an invented size."""
    liar = Stored(np.zeros((100, 64, 3), np.uint8), width=29, height=100)
    monkeypatch.setitem(reading._READERS, "png", lambda _data, _limits: liar)
    with pytest.raises(Corrupt, match="64 x 100 pixels instead of 29 x 100"):
        imagefile.decode(MADE["png"](), max_pixels=MOST)
    gray = Stored(np.zeros((100, 29), np.uint8), width=29, height=100, space="LAB")
    monkeypatch.setitem(reading._READERS, "png", lambda _data, _limits: gray)
    with pytest.raises(Corrupt, match="other channels"):
        imagefile.decode(MADE["png"](), max_pixels=MOST)
