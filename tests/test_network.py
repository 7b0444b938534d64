"""Which graph of a model runs: the original, the one prepared for CoreML, or the one with its trained resizes."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest
from fake_coreml import FakeCoreML
from fake_session import FakeSession
from test_prepare import Builder
from typer.testing import CliRunner

from watcher import catalog, config
from watcher import session as sessions
from watcher.cli import app
from watcher.errors import ModelError
from watcher.network import Network
from watcher.prepare import prepare
from watcher.session import Report, Shape, runtime


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    network = Builder(8, 64).build(tmp_path / "midas.onnx")
    return write(tmp_path, {"name": str(network)})


def write(tmp_path: Path, model: dict[str, object]) -> Path:
    path = tmp_path / "config.yaml"
    folders = [{name: str(tmp_path / name) for name in ("inbox", "outbox", "processed", "failed")}]
    values = {
        "folders": folders,
        "model": {"dir": str(tmp_path / "models"), **model},
        "state_dir": str(tmp_path / "state"),
    }
    path.write_text(json.dumps(values))
    return path


def used(path: Path) -> dict[str, object]:
    network = Network(config.load(path))
    with network.open() as session:
        return network.about(session.report)


def made(tmp_path: Path, recipe: catalog.Recipe) -> None:
    settings = config.load(tmp_path / "config.yaml")
    folder = config.models_dir(settings)
    prepare(catalog.find(settings.model.name, folder), folder, recipe)


def test_the_prepared_graph_runs_where_coreml_may(
    settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prepared is for CoreML: on the CPU alone, or where the original is asked for, the original runs."""
    made(tmp_path, "static")
    assert used(settings_file)["graph"] == "original"
    fake = FakeCoreML()
    monkeypatch.setattr(runtime, "runtime", lambda: fake)
    name = str(tmp_path / "midas.onnx")
    assert used(settings_file)["graph"] == "static"
    assert used(write(tmp_path, {"name": name, "provider": "cpu"}))["graph"] == "original"
    assert used(write(tmp_path, {"name": name, "graph": "original"}))["graph"] == "original"


def test_trained_resizes_are_a_choice(settings_file: Path, tmp_path: Path) -> None:
    """They run only when they are asked for by name, on every provider, and every map says so."""
    path = write(tmp_path, {"name": str(tmp_path / "midas.onnx"), "graph": "trained"})
    with pytest.raises(ModelError, match="models prepare"):
        used(path)
    made(tmp_path, "trained")
    about = used(path)
    assert about["graph"] == "trained"
    original = used(write(tmp_path, {"name": str(tmp_path / "midas.onnx")}))
    assert original["model_sha256"] != about["model_sha256"]


def test_the_verbs_tell_what_they_did(settings_file: Path) -> None:
    """`models prepare` reports forecast and difference; `models bench` the time of every provider."""
    run = CliRunner().invoke
    told = run(app, ["models", "prepare", str(settings_file.with_name("midas.onnx")), "--config", str(settings_file)])
    assert told.exit_code == 0
    assert "1 partition(s)" in told.stdout
    assert "of the map's range" in told.stdout
    told = run(app, ["models", "bench", "--json", "--config", str(settings_file)])
    assert json.loads(told.stdout)["trials"][0]["ms"] > 0
    told = run(app, ["models", "prepare", "starter", "--as", "sharper", "--config", str(settings_file)])
    assert told.exit_code == 2


@pytest.mark.parametrize(
    ("answer", "fallback", "guilty"),
    [("map", True, True), ("flat", True, False), ("map", False, False)],
)
def test_the_cpu_is_asked_before_a_rung_is_condemned(
    settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, fallback: bool, guilty: bool
) -> None:
    """A map without content that the CPU gives too is nobody's fault, and without fallback one frame stops nobody."""
    write(tmp_path, {"name": str(tmp_path / "midas.onnx"), "allow_fallback": fallback})
    network = Network(config.load(settings_file))
    asked: list[str] = []

    def judge(_path: Path, options: sessions.Options) -> AbstractContextManager[FakeSession]:
        asked.append(options.provider)
        return nullcontext(
            FakeSession(Shape(8, 8), lambda tensor: tensor[0, 0] if answer == "map" else np.zeros_like(tensor[0, 0]))
        )

    monkeypatch.setattr(sessions, "open_session", judge)
    report = Report("auto", "coreml", {}, 1, 1.0, 1.0, "fake 1", trial_key="ALL")
    tensor = np.linspace(0, 1, 3 * 64, dtype=np.float32).reshape(1, 3, 8, 8)
    assert network.condemn(report, tensor) is guilty
    assert asked == (["cpu"] if fallback else [])
    assert bool(list((tmp_path / "state").rglob("*strikes*"))) is guilty
