"""``depth-watcher doctor``: each precondition is looked at, and what is wrong is said with its remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Home, RunCli, StartCli, make_picture
from waiting import until

from watcher.doctor import program

KEYS = {"id", "title", "state", "found", "why", "remedy"}


def look(run_cli: RunCli, *args: str | Path, code: int = 0) -> dict[str, dict[str, str]]:
    done = run_cli("doctor", "--json", *args)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert all(set(finding) == KEYS for finding in found)
    return {finding["id"]: finding for finding in found}


def config(place: Path, text: str) -> Path:
    file = place / "config.yaml"
    file.write_text(text)
    return file


def test_a_fresh_machine(run_cli: RunCli, home: Home) -> None:
    """Nothing is wrong, nothing is left behind, and the network was really run."""
    before = sorted(home.path.rglob("*"))
    findings = look(run_cli)
    assert {finding["state"] for finding in findings.values()} == {"ok", "warning"}
    assert findings["model"]["state"] == "warning"  # the starter is said to be one
    assert " ms on cpu" in findings["inference"]["found"]
    assert "partition" in findings["graph"]["found"]
    assert sorted(home.path.rglob("*")) == before


def test_mistakes_in_the_settings(run_cli: RunCli, tmp_path: Path) -> None:
    """They are problems, and what can be checked still is."""
    findings = look(run_cli, "--config", config(tmp_path, "watch: {settle_s: soon}\n"), code=1)
    assert "line 1: watch.settle_s" in findings["config"]["found"]
    assert findings["inference"]["state"] == "ok"


def test_folders_that_cannot_be(run_cli: RunCli, tmp_path: Path) -> None:
    """A folder that can neither be read nor made is a problem with a remedy."""
    text = "folders: [{inbox: /proc/nowhere/in, outbox: out, processed: done, failed: no}]\n"
    findings = look(run_cli, "--config", config(tmp_path, text), code=1)
    assert findings["folder-1-inbox"]["state"] == "problem"
    assert findings["folder-1-inbox"]["remedy"]
    assert findings["folder-1-outbox"]["state"] == "ok"


def test_a_damaged_model(run_cli: RunCli, tmp_path: Path) -> None:
    """A network that cannot be loaded is found before anybody waits for maps."""
    (tmp_path / "own.onnx").write_bytes(b"no network")
    findings = look(run_cli, "--config", config(tmp_path, "model: {name: ./own.onnx}\n"), code=1)
    assert findings["inference"]["state"] == "problem"


def test_beside_a_daemon(run_cli: RunCli, start_cli: StartCli, home: Home) -> None:
    """A running daemon is named, and is no problem; its inbox is read, not only listed."""
    start_cli("run")
    until(lambda: json.loads(run_cli("status", "--json").stdout)["state"] == "running")
    make_picture(home.path / "DepthWatcher/inbox/a.png")
    assert "run since" in look(run_cli)["daemon"]["found"]


@pytest.mark.parametrize(
    ("installed", "state"),
    [
        ({"onnxruntime": "1.32.0"}, "ok"),
        ({"onnxruntime": "1.30.0"}, "warning"),
        ({"onnxruntime-silicon": "1.16.3"}, "warning"),
        ({"onnxruntime": "1.32.0", "onnxruntime-silicon": "1.16.3"}, "problem"),
        ({}, "problem"),
    ],
)
def test_runtime_packages(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], state: str) -> None:
    """Exactly one runtime, and a recent one; two share one import name and overwrite each other."""
    monkeypatch.setattr(program, "_version", lambda name: installed.get(name, ""))
    finding = next(iter(program.runtime()))
    assert finding.state == state
    assert bool(finding.remedy) == (state != "ok")
