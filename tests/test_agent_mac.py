"""A new user's way through docs/macos.md: the verbs, a launchctl that starts the real program, and launchd's rules."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import Home, make_picture
from fake_launchctl import UID, FakeLaunchctl, Loaded
from launchd_simulator import Simulator
from living import Life
from typer.testing import CliRunner

from watcher import agent, cli, clock
from watcher.agent.asking import Tools


@dataclass
class Launchctl(FakeLaunchctl):
    """Answers as the fake does, and starts the plist's program as the simulator does; here time is real."""

    home: Path = Path()
    sims: dict[str, Simulator] = field(default_factory=dict)

    def _begin(self, job: Loaded) -> None:
        sim = self.sims[job.path] = Simulator(Path(job.path), self.home)
        sim.bootstrap()
        job.runs += 1
        job.pid = sim.pid

    def _end(self, job: Loaded) -> None:
        if job.pid is not None:
            job.last_exit = str(self.sims.pop(job.path).bootout())
        job.pid = None

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        threading.Event().wait(0.05)
        for job in self.jobs.values():
            sim = self.sims.get(job.path)
            if sim is not None and sim.look().pid is None and sim.last is not None:
                job.pid, job.last_exit = None, str(sim.last)


@pytest.fixture
def launchctl(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launchctl]:
    fake = Launchctl(home=home.path)
    monkeypatch.setattr(agent, "_MAC", True)
    monkeypatch.setattr(agent, "Tools", lambda _: Tools(fake, clock.now_s, fake.pause))
    monkeypatch.setattr(os, "getuid", lambda: UID)
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    yield fake
    for sim in fake.sims.values():
        sim.bootout(0)


def say(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.app, list(words))
    assert result.exit_code == code, result.output
    return result.output


def test_whole_way(launchctl: Launchctl, home: Home, tmp_path: Path) -> None:
    """install, a picture, status, install again, stop, start, uninstall: each does what the page says."""
    life = Life(home, tmp_path)
    config = str(life.file)
    assert "<key>Label</key>" in say("install", "--print", "--config", config)
    assert not agent.installed_file().exists()
    said = say("install", "--config", config)
    assert "Background Items Added" in said
    first = life.told().pid
    assert f"running as process {first}" in said
    make_picture(life.inbox / "a.png")
    life.await_done(1)
    assert f"running, process {first}, 1 runs" in say("status", "--config", config)
    say("install", "--config", config)
    assert life.told().pid not in (None, first)
    say("restart")
    assert say("stop") == "stopped\n"
    assert not life.told().running
    assert "installed, not loaded" in say("status", "--config", config)
    assert "running as process" in say("start")
    assert "the agent is gone" in say("uninstall")
    assert not agent.installed_file().exists()
    assert life.maps() == ["a_depth.png"]


def test_a_mistake_that_install_cannot_see(launchctl: Launchctl, home: Home, tmp_path: Path) -> None:
    """A model that is not there is found by the daemon; the user of install is told in the daemon's words."""
    life = Life(home, tmp_path)
    life.settle(model={"name": str(tmp_path / "none.onnx")})
    said = say("install", "--config", str(life.file), code=69)
    assert "the agent ended by itself" in said
    assert "none.onnx" in said


def test_guarded_folders_are_warned_of(launchctl: Launchctl, home: Home, tmp_path: Path) -> None:
    """A guarded folder is taken, with a warning that names the place, the clicks and the very file to allow."""
    life = Life(home, tmp_path)
    desktop = home.path / "Desktop" / "in"
    desktop.mkdir(parents=True)
    life.settle({"inbox": str(desktop)})
    said = say("install", "--config", str(life.file))
    assert "lies in the Desktop, which macOS guards" in said
    assert "Full Disk Access" in said


def test_guarded_settings_are_warned_of(launchctl: Launchctl, home: Home, tmp_path: Path) -> None:
    """An agent that may not read its settings would never start."""
    life = Life(home, tmp_path)
    file = home.path / "Documents" / "config.yaml"
    file.parent.mkdir()
    file.write_text(life.file.read_text())
    said = say("install", "--config", str(file))
    assert "config.yaml lies in" in said
    assert "which macOS guards" in said


def test_no_sudo(launchctl: Launchctl, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root is refused before anything is asked of launchd."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "without sudo" in say("install", code=2)
    assert launchctl.calls == []
