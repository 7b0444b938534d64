"""Room `rendering` and the way back: several files of one mind, read by others, undone by `inspect`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import OpenEXR  # type: ignore[import-not-found]
import pytest
import tifffile
from conftest import RunCli, make_picture
from PIL import Image

from watcher import depth, inspection
from watcher.config import Output as OutputSettings
from watcher.errors import CannotCreate, NoInput, UsageError
from watcher.frame import Aside, Frame, Identity, Raw, Source
from watcher.imagefile import FORMATS, Picture, read_map
from watcher.rendering import Span, aside, render, span_of

Array = np.ndarray[Any, Any]
ABOUT = {"model": "fake", "model_sha256": "00" * 32, "provider": "cpu"}
# What undoing may be away from the raw depth, in shares of the range; float formats hold it exactly.
ERRORS = {"png16": 1 / 65535, "tiff16": 1 / 65535, "png8": 1 / 255, "jpg": 8 / 255}


def raw_depth(height_px: int = 40, width_px: int = 56) -> Array:
    """(H, W) float32, 180..1900, smooth with an edge."""
    y, x = np.mgrid[0:height_px, 0:width_px].astype(np.float32)
    found = 900 + 600 * np.sin(x / 9) * np.cos(y / 7)
    found[height_px // 2 :, width_px // 3 :] += 350
    return np.asarray(found, np.float32)


def a_raw(values: Array, **more: Any) -> Raw:
    source = Source(Path("/in"), "a.jpg", "a.jpg", Identity(1, 1))
    height_px, width_px = values.shape
    return Raw(Frame(1, source, 0, "a_depth"), values, height_px, width_px, {"source": "a.jpg"}, **more)


def made(raw: Raw, span: Span | None = None, **settings: Any) -> dict[str, bytes]:
    return {o.ending: o.data for o in render(raw, OutputSettings(**settings), ABOUT, span)}


def by_somebody_else(data: bytes, ending: str) -> Array:
    """The map by a reader that this program does not use for it."""
    if ending in (".png", ".jpg"):
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image)
    if ending == ".tif":
        return np.asarray(tifffile.imread(io.BytesIO(data)))
    if ending == ".exr":
        with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
            return np.array(next(iter(file.channels().values())).pixels)
    if ending == ".npy":
        return np.asarray(np.load(io.BytesIO(data)))
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED))


@pytest.mark.parametrize("near", ["white", "black"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_round_trip(fmt: str, near: str, tmp_path: Path) -> None:
    """Every format, either way round: somebody else's reader and ours see the same; undone, it is the raw depth."""
    values = raw_depth()
    files = made(a_raw(values), format=fmt, near=near, sidecar=True)
    ending = next(iter(files))
    path = tmp_path / f"a_depth{ending}"
    path.write_bytes(files[ending])
    path.with_suffix(".json").write_bytes(files[".json"])
    found = inspection.examine(path)
    assert np.array_equal(found.values, by_somebody_else(files[ending], ending))
    far_first = np.argsort(values.ravel())
    stored = found.values.ravel()[far_first].astype(np.float64)
    assert bool(stored[-1] > stored[0]) is (near == "white")
    back = inspection.raw_of(found)
    span = float(values.max() - values.min())
    error = np.abs(back.astype(np.float64) - values).max()
    assert error <= (ERRORS[fmt] * span if fmt in ERRORS else (0 if near == "white" else 1e-3))
    assert found.told_by == ("a_depth.json" if fmt in ("pfm", "npy") else "the map itself")
    assert found.facts["model"] == "fake"


def test_several_files_are_of_one_mind(tmp_path: Path) -> None:
    """A list of formats gives them all, the first one being the map; they hold the same depth."""
    files = made(a_raw(raw_depth()), format=["png16", "exr", "npy", "jpg"], preview="turbo")
    assert list(files) == [".png", ".exr", ".npy", ".jpg", ".preview.jpg"]
    plain = by_somebody_else(files[".npy"], ".npy")
    assert np.array_equal(plain, by_somebody_else(files[".exr"], ".exr"))
    scaled = (plain - plain.min()) / (plain.max() - plain.min())
    assert np.abs(by_somebody_else(files[".png"], ".png") / 65535 - scaled).max() <= 1 / 65535


@pytest.mark.parametrize("channel", ["Z", "Y"])
@pytest.mark.parametrize("kind", ["float", "half"])
def test_an_exr_as_it_was_asked_for(kind: str, channel: str) -> None:
    """The channel has the wanted name and the wanted bits; half keeps eleven of them."""
    values = raw_depth()
    data = made(a_raw(values), format="exr", exr_type=kind, exr_channel=channel)[".exr"]
    with OpenEXR.File(io.BytesIO(data), separate_channels=True) as file:
        channels = {name: np.array(plane.pixels) for name, plane in file.channels().items()}
    assert list(channels) == [channel]
    assert channels[channel].dtype.name == ("float16" if kind == "half" else "float32")
    assert np.abs(channels[channel].astype(np.float32) / values - 1).max() <= (2**-11 if kind == "half" else 0)


def test_what_does_not_fit_half_stays_float() -> None:
    """65504 is the end of half; a map beyond it is written in full instead of as infinity."""
    data = made(a_raw(raw_depth() * 100), format="exr", exr_type="half")[".exr"]
    found = by_somebody_else(data, ".exr")
    assert found.dtype == np.float32
    assert found.max() > 65504


def test_percentiles_leave_outliers_out() -> None:
    """One wild value no longer decides about the scale; what lies beyond is clipped, and the range is written down."""
    values = raw_depth()
    values[0, 0] = 90_000.0
    settings: dict[str, Any] = {"range": {"percentile": [0.5, 99.5]}, "sidecar": True}
    files = made(a_raw(values), **settings)
    facts = json.loads(files[".json"])
    assert facts["range"] == "percentile 0.5 99.5"
    low, high = np.percentile(values.astype(np.float64), (0.5, 99.5))
    assert (facts["range_min"], facts["range_max"]) == pytest.approx((low, high))
    assert facts["raw_max"] == 90_000.0
    map_ = by_somebody_else(files[".png"], ".png")
    assert map_[0, 0] == 65535
    assert np.median(map_) > 10_000
    assert np.median(by_somebody_else(made(a_raw(values))[".png"], ".png")) < 1000


def test_percentiles_that_are_one_value_give_way() -> None:
    """A small object before an even wall is more than 0.5 % of nothing: it is not scaled away."""
    values = np.full((40, 40), 5.0, np.float32)
    values[0, 0] = 9.0
    span = span_of(a_raw(values), OutputSettings.model_validate({"range": {"percentile": [1, 99]}}))
    assert (span.ends, span.mode) == (None, "frame")
    assert "one value" in span.note
    assert depth.of_percentiles(np.full((2, 2), np.nan, np.float32), (0, 100)) is None


@pytest.mark.parametrize(("near", "far"), [("white", 0), ("black", 65535)])
def test_what_the_picture_does_not_show_is_far(near: str, far: int) -> None:
    """`alpha: mask`: transparent pixels are far in integer and in float maps, and counted."""
    alpha = np.full((20, 28), 255, np.uint8)
    alpha[:, :14] = 0
    values = raw_depth()
    files = made(a_raw(values, aside=Aside(alpha=alpha)), near=near, format=["png16", "npy"], sidecar=True)
    map_, plain = by_somebody_else(files[".png"], ".png"), by_somebody_else(files[".npy"], ".npy")
    assert (map_[:, :27] == far).all()
    assert (map_[:, 29:] != far).mean() > 0.9
    assert np.allclose(plain[:, :27], values.max() if near == "black" else values.min())
    assert json.loads(files[".json"])["masked"] == 40 * 28


def test_only_what_is_asked_for_is_kept_of_the_picture() -> None:
    """Nothing travels beside the depth unless an output wants it."""
    picture = Picture(np.zeros((8, 9, 3), np.uint8), 8, 9, alpha=np.full((8, 9), 65535, np.uint16))
    assert aside(picture, OutputSettings()) is None
    assert aside(picture, OutputSettings(side_by_side=True)) is None
    masked = aside(picture, OutputSettings(alpha="mask"))
    assert masked is not None
    assert masked.alpha is not None
    assert masked.picture is None
    assert masked.alpha.dtype == np.uint8
    assert (masked.alpha == 255).all()


def test_the_picture_stands_beside_its_map() -> None:
    """`side_by_side`: the picture left, the map right, equally large."""
    picture = np.zeros((30, 42, 3), np.uint8)
    picture[..., 0] = 200
    data = made(a_raw(raw_depth(), aside=Aside(picture)), preview="gray", side_by_side=True)[".preview.jpg"]
    shown = by_somebody_else(data, ".jpg").astype(int)
    assert shown.shape == (30, 2 * 42 + 12, 3)
    assert shown[15, 20, 0] > 180
    assert shown[15, 20, 2] < 30
    assert np.ptp(shown[15, 70]) < 12


def test_a_map_without_facts_cannot_be_undone(tmp_path: Path) -> None:
    """Nothing is guessed: without a range there is no way back, and existing files are never replaced."""
    path = tmp_path / "x.npy"
    np.save(path, raw_depth())
    with pytest.raises(UsageError, match="scaled"):
        inspection.raw_of(inspection.examine(path))
    with pytest.raises(NoInput):
        inspection.examine(tmp_path / "none.png")
    colour = tmp_path / "c.png"
    Image.new("RGB", (4, 4)).save(colour)
    with pytest.raises(UsageError, match="not a depth map"):
        inspection.examine(colour)
    (tmp_path / "t.txt").write_text("hello")
    with pytest.raises(UsageError, match="no depth map"):
        inspection.examine(tmp_path / "t.txt")
    good = tmp_path / "g.png"
    good.write_bytes(made(a_raw(raw_depth()))[".png"])
    with pytest.raises(CannotCreate, match="already"):
        inspection.save_raw(inspection.examine(good), path)


def test_the_verb(tmp_path: Path, run_cli: RunCli) -> None:
    """`inspect` prints what the map says, `--json` for programs, and `--raw` writes the depth."""
    path = tmp_path / "a_depth.png"
    path.write_bytes(made(a_raw(raw_depth()))[".png"])
    shown = run_cli("inspect", path, "--json", "--raw", tmp_path / "a.npy")
    assert shown.returncode == 0, shown.stderr
    facts = json.loads(shown.stdout)
    assert (facts["dtype"], facts["facts"]["range"]) == ("uint16", "frame")
    assert np.abs(np.load(tmp_path / "a.npy") - raw_depth()).max() < 0.05
    assert "model_sha256" in run_cli("inspect", path).stdout
    assert run_cli("inspect", tmp_path / "no.png").returncode == 66
    assert np.array_equal(read_map(path), by_somebody_else(path.read_bytes(), ".png"))


def test_a_map_is_found_in_the_outboxes(tmp_path: Path, run_cli: RunCli) -> None:
    """`inspect NAME` needs no path where an outbox of the settings has it; a file that is here wins; 66 for none."""
    config, out, here = tmp_path / "c.yaml", tmp_path / "out", tmp_path / "here"
    config.write_text(f"folders: [{{inbox: '{tmp_path / 'in'}', outbox: '{out}'}}]\n")
    (out / "take").mkdir(parents=True)
    here.mkdir()
    (out / "take" / "a_depth.png").write_bytes(made(a_raw(raw_depth()))[".png"])
    told = run_cli("inspect", "take/a_depth.png", "--json", "--config", config, cwd=here)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["facts"]["near"] == "white"
    assert run_cli("inspect", "take/b_depth.png", "--config", config, cwd=here).returncode == 66
    (here / "take").mkdir()
    (here / "take" / "a_depth.png").write_bytes(made(a_raw(raw_depth()), near="black")[".png"])
    told = run_cli("inspect", "take/a_depth.png", "--json", "--config", config, cwd=here)
    assert json.loads(told.stdout)["facts"]["near"] == "black"


@pytest.mark.parametrize("mode", ["shot", "shot-live"])
def test_single_maps_know_no_shots_and_say_so(tmp_path: Path, run_cli: RunCli, mode: str) -> None:
    """`depth` with a range of shots is no silent `frame`: a note on stderr, and `range_note` in the map."""
    config = tmp_path / "c.yaml"
    config.write_text(
        f"folders: [{{inbox: '{tmp_path / 'in'}', output: {{range: {mode}}}}}]\nmodel: {{name: starter}}\n"
    )
    picture = make_picture(tmp_path / "a_0001.png")
    done = run_cli("depth", picture, "--config", config)
    assert done.returncode == 0, done.stderr
    assert f"note: range: {mode} is for shots" in done.stderr
    facts = inspection.examine(tmp_path / "a_0001_depth.png").facts
    assert (facts["range"], facts["range_note"]) == ("frame", "it belongs to no shot")
