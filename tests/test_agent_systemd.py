"""The verbs on Linux: the installed command, a systemctl of our own on the PATH, and the real daemon."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, RunCli, make_picture
from living import Life

from watcher import notices
from watcher.agent import notifier, plist, systemd
from watcher.agent_label import UNIT
from watcher.errors import ExitCode, UsageError

FAKE = Path(__file__).with_name("fake_systemctl.py")


class Desk:
    """A Linux user with a manager of user services."""

    def __init__(self, home: Home, place: Path, run: RunCli) -> None:
        self.life = Life(home, place)
        self.place = place / "systemd"
        self.place.mkdir()
        bin_dir = place / "bin"
        bin_dir.mkdir()
        script = bin_dir / "systemctl"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
        script.chmod(0o755)
        self.env = {"PATH": f"{bin_dir}:{home.env['PATH']}", "FAKE_SYSTEMD": str(self.place)}
        self.unit = home.path / ".config" / "systemd" / "user" / UNIT
        self._run = run

    def __call__(self, *words: str, code: int = 0) -> str:
        done = self._run(*words, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    @property
    def state(self) -> dict[str, Any]:
        found = json.loads((self.place / "state.json").read_text())
        assert isinstance(found, dict)
        return found

    def bury(self) -> None:
        if (self.place / "state.json").exists() and (pid := self.state["pid"]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def desk(home: Home, tmp_path: Path, run_cli: RunCli) -> Iterator[Desk]:
    made = Desk(home, tmp_path, run_cli)
    yield made
    made.bury()


def test_whole_life(desk: Desk) -> None:
    """install, work, status, restart, stop, start, logs, uninstall: as a user would do it, one after the other."""
    config = str(desk.life.file)
    said = desk("install", "--config", config)
    pid = desk.state["pid"]
    assert f"running as process {pid}" in said
    assert desk.state["enabled"] is True
    assert desk.life.told().pid == pid
    make_picture(desk.life.inbox / "a.png")
    desk.life.await_done(1)
    assert f"{UNIT}: active, process {pid}" in desk("status", "--config", config)
    desk("install", "--config", config)
    again = desk.state["pid"]
    assert again != pid
    desk("restart")  # without --config: the settings are those of the installed agent
    assert desk.state["pid"] not in (pid, again)
    assert desk("stop") == "stopped\n"
    assert desk("stop") == "it was not running\n"
    assert not desk.life.told().running
    assert "running as process" in desk("start")
    assert "process" in desk("logs", "-n", "3", "--config", config)
    assert "the agent is gone" in desk("uninstall")
    assert not desk.unit.exists()
    assert not desk.life.told().running
    assert desk.life.maps() == ["a_depth.png"]
    assert desk("uninstall") == "not there\n"


def test_print_does_nothing(desk: Desk) -> None:
    """`install --print` shows the whole unit and asks nobody for anything."""
    said = desk("install", "--print", "--config", str(desk.life.file))
    assert f"ExecStart={sys.executable} -m watcher run --config {desk.life.file}" in said
    assert not desk.unit.exists()
    assert not (desk.place / "state.json").exists()


def test_without_settings(desk: Desk, home: Home) -> None:
    """A first user has no settings: the default file is written, and the agent runs with it."""
    said = desk("install")
    file = home.path / ".config" / "depth-watcher" / "config.yaml"
    assert f"written: {file}" in said
    assert f"--config {file}" in desk.unit.read_text()
    assert (home.path / "DepthWatcher" / "inbox").is_dir()


def test_a_broken_file_is_refused(desk: Desk) -> None:
    """Settings with a mistake are refused before anything is written; stopping still works with them."""
    desk("install", "--config", str(desk.life.file))
    desk.life.file.write_text("nonsense: 1")
    assert "nonsense" in desk("install", "--config", str(desk.life.file), code=ExitCode.USAGE)
    assert desk("stop") == "stopped\n"
    assert "the agent ended by itself: There is a mistake in" in desk("start", code=ExitCode.UNAVAILABLE)


def test_no_manager(desk: Desk) -> None:
    """Where no manager of user services runs, the error says what to do instead."""
    (desk.place / "no-bus").touch()
    said = desk("install", "--config", str(desk.life.file), code=ExitCode.UNAVAILABLE)
    assert "no manager of user services runs here" in said
    assert "written:" in desk("install", code=69)
    assert not list(desk.life.home.path.rglob("config.yaml"))  # what refuses leaves nothing behind
    assert "depth-watcher run" in said


def test_not_installed(desk: Desk) -> None:
    """start names the verb that is missing."""
    assert "`depth-watcher install` does that" in desk("start", code=ExitCode.UNAVAILABLE)


@pytest.mark.parametrize("name", ["a b", "100%", "$HOME", 'say "x"', "it's", "Ü", "back\\slash"])
def test_names_of_any_kind(name: str, tmp_path: Path) -> None:
    """Whatever a folder is called, the unit's words are read back as they were."""
    filling = plist.Filling(Path(f"/{name}/python"), Path(f"/{name}/c.yaml"), Path(f"/{name}"), Path("/l"))
    file = tmp_path / UNIT
    file.write_bytes(systemd.render(filling))
    words = systemd.program_words(file)
    assert words == [f"/{name}/python", "-m", "watcher", "run", "--config", f"/{name}/c.yaml"]


def test_line_breaks_are_refused() -> None:
    """A path with a line break would write a line of its own into the unit."""
    with pytest.raises(UsageError):
        systemd.render(plist.Filling(Path("/a\nExecStartPre=/bin/x"), Path("/c"), Path("/w"), Path("/l")))


def test_follow(home: Home, tmp_path: Path) -> None:
    """Following gives whole lines only, and goes on across the log's turning over."""
    from watcher.agent.tail import Tail, last_lines

    file = tmp_path / "log"
    assert last_lines(file, 3) == []
    file.write_bytes(b"".join(b"line %d\n" % i for i in range(40_000)))
    assert last_lines(file, 2) == ["line 39998", "line 39999"]
    tail = Tail(file)
    assert tail.fresh() == []
    with file.open("ab") as log:
        log.write(b"half")
        log.flush()
        assert tail.fresh() == []
        log.write(b" and half\nnext\n")
        log.flush()
        assert tail.fresh() == ["half and half", "next"]
    file.rename(tmp_path / "log.1")
    assert tail.fresh() == []
    file.write_text("new\n")
    assert tail.fresh() == ["new"]


def test_notification_helper(desk: Desk) -> None:
    """With notify: true a path unit is enabled that starts a service; both are gone after uninstall."""
    desk.life.settle(notify=True)
    desk("install", "--config", str(desk.life.file))
    path, job = (desk.unit.with_name(name) for name in (notifier.PATH_UNIT, notifier.SERVICE_UNIT))
    assert f"DirectoryNotEmpty={desk.life.state / notices.FOLDER}\n" in path.read_text()
    assert f" -m watcher notify --config {desk.life.file}\n" in job.read_text()
    assert any(f"enable {path.name}" in call for call in desk.state["calls"])
    desk("uninstall")
    assert not path.exists()
    assert not job.exists()
    assert any(f"disable --now {path.name}" in call for call in desk.state["calls"])


def test_a_permanent_mistake_is_told(desk: Desk) -> None:
    """A daemon that cannot run says why where `status` reads it, and `start` says it in the daemon's words."""
    desk("install", "--config", str(desk.life.file))
    desk("stop")
    desk.life.settle(model={"name": "not-a-model"})
    said = desk("start", "--config", str(desk.life.file), code=ExitCode.UNAVAILABLE)
    assert "the agent ended by itself: " in said
    assert "not-a-model" in said
    assert "because   " in desk("status", "--config", str(desk.life.file))
