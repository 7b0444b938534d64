"""The arithmetic between pictures and the network, and between the network and maps."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from watcher.depth import Plan, finish, input_size, min_side_px, prepare
from watcher.errors import NoDepth
from watcher.session import open_session

STARTER = Path(__file__).parents[1] / "models" / "starter.onnx"
# Height and width: tiny, thin, odd, exactly the network's, one axis above and one below it, video, camera.
SIZES = [
    (1, 1),
    (1, 3000),
    (3000, 5),
    (2, 2),
    (5, 7),
    (128, 128),
    (64, 640),
    (127, 129),
    (384, 384),
    (333, 517),
    (1080, 1920),
    (3000, 4000),
]


def picture(height: int, width: int, dtype: str = "uint8", seed: int = 0) -> NDArray[Any]:
    """Random blocks with noise on top: edges, flats and full-range values."""
    random = np.random.default_rng(seed)
    blocks = random.random((max(1, height // 16), max(1, width // 16), 3))
    smooth = cv2.resize(blocks, (width, height), interpolation=cv2.INTER_NEAREST).reshape(height, width, 3)
    mixed = np.clip(smooth + random.normal(0, 0.1, smooth.shape), 0, 1)
    full = {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
    return (mixed * full).astype(dtype)


def published_input(pixels: NDArray[np.uint8], side_px: int) -> NDArray[np.float32]:
    """The published procedure in one go: RGB / 255 in float64, cubic to the network's size, NCHW float32."""
    picture = pixels / 255.0
    resized = cv2.resize(picture, (side_px, side_px), interpolation=cv2.INTER_CUBIC)
    return np.ascontiguousarray(np.transpose(resized, (2, 0, 1))).astype(np.float32)[np.newaxis]


def published_map(raw: NDArray[np.float32], height: int, width: int) -> NDArray[np.uint16]:
    """The published way back: cubic to the picture's size, min-max, times 65535, cut to an integer."""
    depth = cv2.resize(raw, (width, height), interpolation=cv2.INTER_CUBIC)
    low, high = depth.min(), depth.max()
    if high - low > np.finfo("float").eps:
        return np.asarray(65535 * (depth - low) / (high - low)).astype(np.uint16)
    return np.zeros(depth.shape, "uint16")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_reference_is_the_published_arithmetic(size: tuple[int, int]) -> None:
    """From picture to 16-bit map, reference mode says what the published procedure says, within 1 of 65535."""
    pixels = picture(*size)
    plan = Plan(128, 128, resample="reference")
    with open_session(STARTER) as session:
        ours = finish(session.run(prepare(pixels, plan)), size)
        theirs = published_map(session.run(published_input(pixels, 128)), *size)
    assert ours.values.shape == theirs.shape == size
    assert ours.values.dtype == np.uint16
    assert np.abs(ours.values.astype(int) - theirs.astype(int)).max() <= 1


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("side_px", [128, 256, 384])
def test_reference_input_is_exact(size: tuple[int, int], side_px: int) -> None:
    """Working in bands changes not one bit of the network's input."""
    pixels = picture(*size)
    ours = prepare(pixels, Plan(side_px, side_px, resample="reference"))
    np.testing.assert_array_equal(ours, published_input(pixels, side_px))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("resample", ["auto", "reference"])
@pytest.mark.parametrize("size", [(1, 1), (300, 500), (60, 300), (40, 40)])
def test_input_contract(size: tuple[int, int], resample: Any, dtype: str) -> None:
    """Every dtype gives the same picture in 0..1, C-contiguous (1, 3, h, w) float32, and leaves the source alone."""
    pixels = picture(*size, dtype)
    before = pixels.copy()
    tensor = prepare(pixels, Plan(96, 64, resample=resample))
    assert tensor.shape == (1, 3, 96, 64)
    assert tensor.dtype == np.float32
    assert tensor.flags.c_contiguous
    assert tensor.min() > -0.5
    assert tensor.max() < 1.5
    as_float = pixels.astype(np.float32) / {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
    same = prepare(as_float.astype(np.float32), Plan(96, 64, resample=resample))
    assert np.abs(tensor - same).max() < 1 / 255  # averages of uint8 are uint8
    np.testing.assert_array_equal(pixels, before)


def test_channels_stay_in_place() -> None:
    """Red goes into the first plane: RGB in, RGB to the network."""
    pixels = np.zeros((50, 70, 3), np.uint8)
    pixels[..., 0] = 255
    for resample in ("auto", "reference"):
        tensor = prepare(pixels, Plan(32, 32, resample=resample))
        np.testing.assert_allclose(tensor[0].mean((1, 2)), [1, 0, 0], atol=1e-6)


def test_mean_and_std() -> None:
    """Networks that want normalised input get (value - mean) / std for each channel."""
    pixels = np.full((20, 20, 3), 51, np.uint8)  # 0.2
    tensor = prepare(pixels, Plan(8, 8, mean=(0.1, 0.2, 0.3), std=(0.5, 1.0, 0.25)))
    np.testing.assert_allclose(tensor[0, :, 0, 0], [0.2, 0.0, -0.4], atol=1e-6)


def test_auto_does_not_alias() -> None:
    """A pattern too fine for the network becomes its mean in the default, and moiré in cubic decimation."""
    rows, columns = np.mgrid[0:1200, 0:1600]
    fine = (((rows // 3 + columns // 3) % 2) * 255).astype(np.uint8)
    pixels = np.repeat(fine[..., np.newaxis], 3, axis=2)
    error = {
        mode: float(np.abs(prepare(pixels, Plan(128, 128, resample=mode)) - 0.5).mean())
        for mode in ("auto", "reference")
    }
    assert error["auto"] < 0.05
    assert error["reference"] > 5 * error["auto"]


def test_auto_is_cubic_where_it_enlarges() -> None:
    """A picture smaller than the network is interpolated exactly as in reference mode."""
    pixels = picture(40, 30)
    auto = prepare(pixels, Plan(128, 128))
    np.testing.assert_allclose(auto, published_input(pixels, 128), atol=2e-6)


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3), np.float64),
        np.zeros((4, 4, 3), np.int16),
    ],
)
def test_input_of_another_shape_is_a_mistake_of_the_caller(pixels: Any) -> None:
    """Gray, alpha, empty or double pictures are refused, not guessed at."""
    with pytest.raises(ValueError, match="pixels must be"):
        prepare(pixels, Plan(8, 8))


# -- sizes --------------------------------------------------------------------------------------------------------

FREE = Plan(518, 518, fixed=False, multiple=14, upper_px=1554)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ((518, 518), (518, 518)),
        ((1080, 1920), (518, 924)),  # 920.9 -> 924
        ((1920, 1080), (924, 518)),
        ((3000, 4000), (518, 686)),  # 690.7 -> 686
        ((1, 1), (518, 518)),
        ((1, 3000), (518, 1554)),  # squeezed at the bound
        ((3000, 1), (1554, 518)),
    ],
)
def test_free_size_keeps_the_aspect(source: tuple[int, int], wanted: tuple[int, int]) -> None:
    """Free networks get the published rule: the smaller side reaches the bound, both are multiples, none explodes."""
    assert input_size(FREE, *source) == wanted


@given(st.integers(1, 40_000), st.integers(1, 40_000))
def test_free_size_holds_its_bounds(height: int, width: int) -> None:
    """Whatever the picture, each side is a multiple of 14 between the two bounds."""
    for side in input_size(FREE, height, width):
        assert side % 14 == 0
        assert 518 <= side <= 1554


def test_free_size_is_what_prepare_makes() -> None:
    """The tensor has the size that was announced."""
    tensor = prepare(picture(100, 220), FREE)
    assert tensor.shape[2:] == input_size(FREE, 100, 220)


def test_decoders_may_shrink_only_in_auto() -> None:
    """Reference mode asks decoders for every pixel; the default leaves them room, but never less than it needs."""
    assert min_side_px(Plan(256, 384, resample="reference")) == 0
    assert min_side_px(Plan(256, 384)) >= 384


# -- maps ---------------------------------------------------------------------------------------------------------


def ramp(height: int = 4, width: int = 8) -> NDArray[np.float32]:
    return np.linspace(10, 20, height * width, dtype=np.float32).reshape(height, width)


def test_map_spans_the_scale() -> None:
    """The farthest value is black and the nearest white, by rounding to the nearest integer between."""
    made = finish(ramp(), None)
    assert (made.values.min(), made.values.max()) == (0, 65535)
    np.testing.assert_array_equal(made.values.ravel(), np.round(np.arange(32) / 31 * 65535).astype(np.uint16))
    assert (made.raw_min, made.raw_max, made.low, made.high) == (10, 20, 10, 20)
    assert (made.nonfinite, made.constant) == (0, False)


def test_near_black_is_the_inverse() -> None:
    """`near: black` is the same map, subtracted from white."""
    for kind, full in (("uint16", 65535), ("uint8", 255)):
        white = finish(ramp(), (9, 13), kind=kind)  # type: ignore[arg-type]
        black = finish(ramp(), (9, 13), kind=kind, near="black")  # type: ignore[arg-type]
        np.testing.assert_array_equal(white.values.astype(int) + black.values.astype(int), full)


def test_eight_bit() -> None:
    """8-bit maps use 0..255."""
    made = finish(ramp(), None, kind="uint8")
    assert made.values.dtype == np.uint8
    np.testing.assert_array_equal(made.values.ravel(), np.round(np.arange(32) / 31 * 255).astype(np.uint8))


def test_fixed_range_clips() -> None:
    """A fixed range maps the same raw value to the same gray in every frame, and clips beyond."""
    made = finish(ramp(), None, fixed_range=(12.0, 16.0))
    expected = np.clip((ramp().astype(float) - 12) / 4, 0, 1) * 65535
    assert np.abs(made.values - expected).max() <= 0.51
    assert (made.low, made.high, made.raw_min, made.raw_max) == (12, 16, 10, 20)


def test_fixed_range_holds_for_constant_maps() -> None:
    """A flat picture in a fixed range is gray where its depth is, not black."""
    made = finish(np.full((3, 3), 14, np.float32), None, fixed_range=(12.0, 16.0))
    assert made.constant
    np.testing.assert_array_equal(made.values, 32768)


@pytest.mark.parametrize("kind", ["uint16", "uint8"])
@pytest.mark.parametrize("near", ["white", "black"])
@pytest.mark.parametrize("value", [0.0, 7.25, -3.0, 1e-20])
def test_constant_is_zero(kind: Any, near: Any, value: float) -> None:
    """A picture without depth gives a map of zeros in either polarity, and says so."""
    made = finish(np.full((5, 4), value, np.float32), (10, 9), kind=kind, near=near)
    assert made.constant
    assert not made.values.any()
    assert made.values.shape == (10, 9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_becomes_zero_and_is_counted(bad: float) -> None:
    """One bad value becomes 0, is counted, and does not spread over its neighbours."""
    raw = ramp(8, 8)
    raw[0, 0] = bad
    before = raw.copy()
    made = finish(raw, None)
    assert made.nonfinite == 1
    assert made.values[0, 0] == 0
    assert np.count_nonzero(made.values == 0) == 1
    np.testing.assert_array_equal(raw, before)
    large = finish(raw, (64, 64), kind="float32")
    assert large.nonfinite == 1
    assert np.isfinite(large.values).all()


def test_nothing_finite_is_no_depth() -> None:
    """A map without one usable value is refused, with the frame to blame."""
    with pytest.raises(NoDepth) as caught:
        finish(np.full((4, 4), np.nan, np.float32), (8, 8))
    assert caught.value.blame == "frame"
    assert caught.value.remedy


def test_overflow_while_enlarging_is_counted() -> None:
    """Values at the end of float32 overshoot to infinity; the map is still finite."""
    raw = np.zeros((6, 6), np.float32)
    raw[::2] = np.finfo(np.float32).max
    made = finish(raw, (60, 60))
    assert made.nonfinite > 0
    assert np.isfinite([made.raw_min, made.raw_max]).all()
    assert made.values.max() == 65535


def test_float_maps_keep_the_raw_values() -> None:
    """Float maps carry the relative inverse depth itself: unscaled, unclipped by a range, the source untouched."""
    raw = ramp()
    made = finish(raw, None, kind="float32", fixed_range=(12.0, 16.0))
    np.testing.assert_array_equal(made.values, raw)
    assert made.values is not raw
    assert not np.shares_memory(made.values, raw)


def test_float_near_black_is_mirrored_in_its_range() -> None:
    """In float, `near: black` turns the order and keeps the unit, so that it can be undone."""
    made = finish(ramp(), None, kind="float32", near="black")
    np.testing.assert_allclose(made.values, 30 - ramp(), rtol=1e-6)
    assert made.values.dtype == np.float32


@given(
    st.floats(-3e38, 3e38),
    st.floats(-3e38, 3e38),
)
@settings(max_examples=200, deadline=None)
def test_scaling_undone_within_half_a_step(first: float, second: float) -> None:
    """low + value / 65535 * (high - low) gives the raw value back to half a step, at any magnitude."""
    raw = np.linspace(first, second, 35).astype(np.float32).reshape(5, 7)
    made = finish(raw, None)
    if made.constant:
        assert not made.values.any()
        return
    back = made.low + made.values / 65535 * (made.high - made.low)
    assert np.abs(back - raw).max() <= 0.52 / 65535 * (made.high - made.low)


def test_any_size_out() -> None:
    """Maps of 1x1, of one long row, and longer than a 16-bit coordinate come out in the size asked for."""
    for size in [(1, 1), (1, 3000), (3000, 1), (2, 70_000)]:
        made = finish(ramp(16, 16), size)
        assert made.values.shape == size
    assert finish(np.ones((1, 1), np.float32), (7, 5)).values.shape == (7, 5)


@pytest.mark.parametrize("shape", [(4,), (1, 4, 4), (0, 4)])
def test_raw_of_another_shape_is_a_mistake_of_the_caller(shape: tuple[int, ...]) -> None:
    """Raw depth is one plane."""
    with pytest.raises(ValueError, match="raw depth must be"):
        finish(np.zeros(shape, np.float32), (4, 4))


# -- memory -------------------------------------------------------------------------------------------------------


def peak_bytes(call: Callable[[], object]) -> int:
    """The most that numpy held at once during the call, above what was there before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_twelve_megapixels_stay_modest() -> None:
    """A 12 megapixel picture (36 MB) never becomes its 288 MB double, and its 24 MB map costs one float copy more."""
    pixels = np.zeros((3000, 4000, 3), np.uint8)
    assert peak_bytes(lambda: prepare(pixels, Plan(384, 384, resample="reference"))) < 64e6
    assert peak_bytes(lambda: prepare(pixels, Plan(384, 384))) < 16e6
    assert peak_bytes(lambda: finish(ramp(384, 384), (3000, 4000))) < 90e6
