"""A network that takes the place of the embedded one is fit for it, and everything that names it changes with it."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from training import pictures, ship

MODELS = Path(__file__).parents[1] / "models"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A copy of the folder of the embedded network."""
    return Path(shutil.copytree(MODELS, tmp_path / "models"))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The embedded network with one number changed and a longer name."""
    model = onnx.load(MODELS / "starter.onnx")
    tensor = next(t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT and len(t.dims) == 1)
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))
    model.doc_string = "another one"
    onnx.save(model, tmp_path / "other.onnx")
    return tmp_path / "other.onnx"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has looked, and the machine is quiet."""
    monkeypatch.setattr(ship, "seen", lambda path: "9 of 14 subjects lifted off by eye; not: none")
    monkeypatch.setattr(ship, "milliseconds", lambda path: (5.0, 6.0))


def test_the_embedded_network_is_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opset, operators, shape, size and forecast of what is shipped are what was asked; its operators are listed."""
    monkeypatch.setattr(ship, "milliseconds", lambda path: (5.0, 6.0))
    found = ship.checked(MODELS / "starter.onnx")
    assert all(good for _, good in found.values())
    assert found["operators"][0].startswith("Add, Concat, Conv")
    assert "1 partition" in found["forecast for CoreML, prepared"][0]
    assert 1.2e6 < ship.parameters(MODELS / "starter.onnx") < 1.4e6


def test_time_is_taken() -> None:
    """Two threads take some time, and so does one core; a network of this size needs less than a second."""
    assert all(0 < took < 1000 for took in ship.milliseconds(MODELS / "starter.onnx"))


@pytest.mark.usefixtures("seen")
def test_shipping_changes_all_that_names_the_network(models: Path, other: Path) -> None:
    """File, hash, size and card agree afterwards; the other models of the catalogue and the rest of the card stay."""
    before = tomllib.loads((models / "manifest.toml").read_text(encoding="utf-8"))["model"]
    card = (models / "README.md").read_text(encoding="utf-8").splitlines()
    left = ship.ship(other, models)
    assert "pictures" in left
    after = tomllib.loads((models / "manifest.toml").read_text(encoding="utf-8"))["model"]
    content = other.read_bytes()
    assert (models / "starter.onnx").read_bytes() == content
    assert after[0]["bytes"] == len(content)
    assert after[0]["sha256"] == hashlib.sha256(content).hexdigest() != before[0]["sha256"]
    assert after[1:] == before[1:]
    told = (models / "README.md").read_text(encoding="utf-8").splitlines()
    changed = [line for line, kept in zip(told, card, strict=True) if line != kept]
    assert len(changed) == 1
    assert f"{len(content):,}".replace(",", " ") + " bytes" in changed[0]


@pytest.mark.usefixtures("seen")
def test_what_is_not_fit_is_not_shipped(models: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is too slow is refused with the time it takes, and nothing changes."""
    monkeypatch.setattr(ship, "milliseconds", lambda path: (15.1, 16.0))
    with pytest.raises(SystemExit, match=r"time: 15\.1 ms"):
        ship.ship(other, models)
    assert (models / "starter.onnx").read_bytes() == (MODELS / "starter.onnx").read_bytes()


def test_an_operator_that_is_not_listed_is_found(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that CoreML does not take is named, and the file is not good enough."""
    monkeypatch.setattr(ship, "milliseconds", lambda path: (5.0, 6.0))
    model = onnx.load(other)
    out = model.graph.output[0].name
    model.graph.node[-1].output[0] = "before"
    model.graph.node.append(helper.make_node("Erf", ["before"], [out]))
    onnx.save(model, other)
    said, good = ship.checked(other)["operators"]
    assert "Erf" in said
    assert not good


def test_what_nobody_looked_at_is_not_shipped(models: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers alone are not enough: somebody must have looked at the maps of photographs."""
    monkeypatch.setattr(ship, "milliseconds", lambda path: (5.0, 6.0))
    with pytest.raises(SystemExit, match="nobody has looked"):
        ship.ship(other, models)


def test_pictures_show_the_maps_of_the_embedded_network(tmp_path: Path) -> None:
    """The pictures of the documentation are drawn by the program itself, in the size that the pages expect."""
    written = pictures.draw(tmp_path)
    assert [path.name for path in written] == ["picture-and-map.jpg", "outputs.jpg"]
    for path in written:
        kept, drawn = cv2.imread(str(pictures.TARGET / path.name)), cv2.imread(str(path))
        assert kept is not None
        assert drawn is not None
        assert kept.shape == drawn.shape
        away = float(np.abs(kept.astype(np.int16) - drawn).mean())
        assert away < 4, f"{path.name} shows other maps: python -m training pictures"
