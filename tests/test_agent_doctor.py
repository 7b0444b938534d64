"""What doctor says of the agent, and the report that can be sent to strangers."""

from __future__ import annotations

import json
import plistlib
from pathlib import Path

import pytest
from conftest import Home, RunCli, make_picture
from living import Life

from watcher import agent, config
from watcher.agent import plist
from watcher.doctor import report, service
from watcher.doctor.finding import Finding


@pytest.fixture
def mac(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(agent, "_MAC", True)
    return home.path


def found(said: str = "") -> dict[str, Finding]:
    settings = config.load(None)
    return {finding.id: finding for finding in service.service(settings, Path("/c.yaml"), said)}


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("", "ok"),
        ("io.depthwatcher.agent: running, process 12, 1 runs", "ok"),
        ("io.depthwatcher.agent: not running, no process, 3 runs, last exit code 78: EX_CONFIG", "warning"),
        ("io.depthwatcher.agent: installed, not loaded", "warning"),
        ("io.depthwatcher.agent: installed, not loaded and switched off in Login Items", "problem"),
        ("installed, but cannot be asked: there is no graphical login of this user", "warning"),
    ],
)
def test_agent(home: Home, said: str, state: str) -> None:
    """Each state of the agent has its weight, and whatever is not well has a remedy."""
    finding = found(said)["agent"]
    assert finding.state == state
    assert bool(finding.remedy) == (state != "ok")


def test_drift(mac: Path) -> None:
    """A plist that an older version, or a hand, has written is told with the keys that differ."""
    fill = agent.filling(config.load(None), Path("/c.yaml"), background=True)
    plist.write(agent.installed_file(), plist.render(fill))
    assert "agent-file" not in found()
    values = plistlib.loads(plist.render(fill))
    values["ExitTimeOut"] = 5
    del values["Umask"]
    plist.write(agent.installed_file(), plistlib.dumps(values))
    assert found()["agent-file"].found.startswith("ExitTimeOut, Umask: ")
    agent.installed_file().write_bytes(b"rubbish")
    assert "the whole file" in found()["agent-file"].found


def test_logs_and_crashes(mac: Path) -> None:
    """A native log that has grown, and recent crash reports of a Python, are told."""
    logs = mac / "Library" / "Logs"
    (logs / "DiagnosticReports").mkdir(parents=True)
    (logs / "depth-watcher").mkdir()
    (logs / "DiagnosticReports" / "python3.12-2026-12-01-1.ips").touch()
    (logs / "DiagnosticReports" / "Finder-2026-12-01-1.ips").touch()
    (logs / "depth-watcher" / "agent.err.log").write_bytes(b"x" * 10_000_001)
    told = found()
    assert (told["crashes"].state, told["crashes"].found[:2]) == ("warning", "1 ")
    assert told["native-log"].state == "warning"


def test_report_holds_no_names(run_cli: RunCli, home: Home, tmp_path: Path) -> None:
    """The report of a real doctor names no folder, no file and no user, and is never written over another file."""
    life = Life(home, tmp_path)
    make_picture(life.inbox / "Aunt Agatha.png")
    file = tmp_path / "report.json"
    done = run_cli("doctor", "--config", life.file, "--report", file)
    assert done.returncode == 0, done.stdout
    text = file.read_text()
    assert not [word for word in (str(tmp_path), str(home.path), "Agatha", life.inbox.name + "/") if word in text]
    told = json.loads(text)
    states = {finding["id"]: finding for finding in told["findings"]}
    assert "nodes on" in states["inference"]["found"]
    assert "found" not in states["folder-1-inbox"]
    assert told["system"]["open_files"][0] > 0
    assert "is there already" in run_cli("doctor", "--config", life.file, "--report", file).stderr


def test_paths_go() -> None:
    """Words that may be a place are left out, whatever finding they stand in."""
    findings = [Finding("agent", "agent", "ok", "x: running ('/Users/a/b' ~/c process 3", "")]
    assert report.make(findings)["findings"][0]["found"] == "x: running <path> <path> process 3"
