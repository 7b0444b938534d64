"""Notifications: the daemon leaves small files, and a helper that the system starts shows them. Never seen on a Mac."""

from __future__ import annotations

import json
import os
import plistlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from conftest import PROJECT, Home, make_picture
from fake_launchctl import UID, FakeLaunchctl
from living import Life
from test_forks import Ear
from waiting import until

from watcher import agent, config, notices
from watcher.agent import asking, notifier, plist
from watcher.agent.asking import Answer, Tools
from watcher.cli import agents
from watcher.daemon.heralding import QUIET_S, Herald, sentence
from watcher.daemon.telling import Tally
from watcher.doctor import service
from watcher.errors import Unavailable, UsageError
from watcher.notices import Notice

NASTY = """a"b' & (do shell script "touch x") $(id) `id` %s \\ <b>x</b>.png"""
FILLING = plist.Filling(
    Path("/opt/venv/bin/python"), Path("/Users/a/c.yaml"), Path("/Users/a/s"), Path("/Users/a/l"), spool=Path("/U/s/n")
)


# -- the folder ---------------------------------------------------------------------------------------------------


def test_left_and_taken(tmp_path: Path) -> None:
    """What was left is taken once, in its order; control characters and endless names do not get through."""
    notices.leave(tmp_path / "n", "t", "first\nline\x1b[2J")
    notices.leave(tmp_path / "n", "t", "x" * 1000)
    first, second = notices.take(tmp_path / "n")
    assert first.text == "first line [2J"
    assert len(second.text) == 240
    assert notices.take(tmp_path / "n") == []
    assert os.stat(tmp_path / "n").st_mode & 0o777 == 0o700


def test_bounded(tmp_path: Path) -> None:
    """Where nobody shows them the newest few stay, and no more."""
    for number in range(notices.MOST + 15):
        notices.leave(tmp_path, "t", str(number))
    assert [notice.text for notice in notices.take(tmp_path)] == [str(number) for number in range(15, 35)]


def test_what_cannot_be_shown_goes_too(tmp_path: Path) -> None:
    """Rubbish and stale words are removed unshown, or the system would start the helper for ever."""
    (tmp_path / "1.notice").write_text("rubbish")
    (tmp_path / "2.notice").write_text('["a list"]')
    (tmp_path / "3.notice").write_text(json.dumps({"title": "t", "text": "old", "at_s": 1.0}))
    (tmp_path / "mine.txt").write_text("not ours")
    (tmp_path / ".4.notice.tmp-4194300-1").write_text("half")
    (tmp_path / ".DS_Store").write_text("Finder")
    assert notices.take(tmp_path) == []
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


# -- when ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def herald(tmp_path: Path) -> Herald:
    return Herald(tmp_path / "n", Tally(), lambda: ["b.png"])


def told(herald: Herald) -> list[str]:
    assert herald._spool is not None
    return [notice.text for notice in notices.take(herald._spool)]


def test_a_batch_is_told_when_it_has_ended(herald: Herald) -> None:
    """One notice when nothing was left to do for some seconds; work that goes on begins the wait anew."""
    herald._tally.done = 1
    assert herald.look(0, idle=True) == QUIET_S
    herald.look(1, idle=False)
    herald._tally.done = 3
    assert herald.look(2, idle=True) == QUIET_S
    herald.look(2 + QUIET_S - 0.1, idle=True)
    assert told(herald) == []
    herald.look(2 + QUIET_S, idle=True)
    assert told(herald) == ["3 depth maps are ready"]
    assert herald.look(100, idle=True) == float("inf")
    assert told(herald) == []


def test_what_failed_is_told_before(herald: Herald) -> None:
    """A picture in quarantine is told while the others are still in work; several of them together."""
    herald._tally.done, herald._tally.failed = 5, 1
    herald.look(0, idle=False)
    herald._tally.failed = 2
    herald.look(QUIET_S, idle=False)
    assert told(herald) == ["2 pictures could not be done: b.png and 1 more"]
    herald.look(10, idle=True)
    herald.look(10 + QUIET_S, idle=True)
    assert told(herald) == ["5 depth maps are ready"]


def test_nobody_asked() -> None:
    """Off, which is the default, leaves nothing."""
    assert Herald(None, Tally(done=3), list).look(0, idle=True) == float("inf")


def test_sentences() -> None:
    """One and many, with and without a name."""
    assert sentence(1, 0, []) == "1 depth map is ready"
    assert sentence(2, 1, ["a.png"]) == "2 depth maps are ready; 1 picture could not be done: a.png"


# -- showing ------------------------------------------------------------------------------------------------------


def program(place: Path, name: str) -> Path:
    """A program that writes down, as JSON, the words that it was given."""
    folder = place / "bin"
    folder.mkdir(exist_ok=True)
    file = folder / name
    told = f"open({str(place / 'said')!r}, 'a').write(json.dumps(sys.argv[1:]) + chr(10))"
    file.write_text(f"#!{sys.executable}\nimport json, sys\n{told}\n")
    file.chmod(0o755)
    return folder


def said(place: Path) -> list[list[str]]:
    return [json.loads(line) for line in (place / "said").read_text().splitlines()]


def test_a_name_is_never_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    """A file name full of quotes reaches osascript as one argument, behind the script that never changes."""
    monkeypatch.setattr(agent, "_MAC", True)
    monkeypatch.setenv("PATH", str(program(tmp_path, "osascript")), prepend=os.pathsep)
    settings = config.load(None)
    notices.leave(config.state_dir(settings) / notices.FOLDER, "depth-watcher", NASTY)
    assert agent.show_notices(config.state_dir(settings)) == 1
    (words,) = said(tmp_path)
    assert words == [*notifier._SCRIPT, "depth-watcher", NASTY]
    assert not any(NASTY in script for script in notifier._SCRIPT)
    assert agent.show_notices(config.state_dir(settings)) == 0


def test_notices_are_taken_beside_a_mistake_in_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Home
) -> None:
    """What is not taken would start the helper again and again, for as long as the mistake stands."""
    monkeypatch.setattr(agent, "_MAC", True)
    monkeypatch.setenv("PATH", str(program(tmp_path, "osascript")), prepend=os.pathsep)
    file = tmp_path / "c.yaml"
    file.write_text("state_dir: state\nwatch: {settle_s: soon}\n")
    spool = tmp_path / "state" / notices.FOLDER
    notices.leave(spool, "depth-watcher", "12 maps")
    with pytest.raises(typer.Exit) as left:
        agents.notify(file)
    assert left.value.exit_code == 0
    assert len(said(tmp_path)) == 1
    assert notices.take(spool) == []


@pytest.mark.parametrize("text", ["-e", "--help", "-", ""])
def test_a_name_is_never_an_option(text: str) -> None:
    """Nothing of a notice stands where an option could."""
    words = notifier.words_for(Notice(f"-{text}t", text, 0), mac=True)
    assert words[-2][0] != "-"
    words = notifier.words_for(Notice("t", text, 0), mac=False)
    assert words[1] == "--"


def test_a_name_is_never_markup() -> None:
    """A notification's body is markup on Linux; a name that looks like it is shown as it is."""
    assert notifier.words_for(Notice("t", "<b>a&b", 0), mac=False)[-1] == "&lt;b&gt;a&amp;b"


def test_only_the_newest_are_shown() -> None:
    """After a long absence nobody is buried in notifications."""
    asked: list[str] = []

    def ask(words: Sequence[str]) -> Answer:
        asked.append(words[-1])
        return Answer(0)

    found = [Notice("t", str(number), 0) for number in range(9)]
    assert notifier.show(found, ask, mac=True) == 3
    assert asked == ["6", "7", "8"]
    with pytest.raises(Unavailable, match="not shown: no"):
        notifier.show(found, lambda _: Answer(1, "", "no"), mac=True)


def test_notify_holds_no_runtime(home: Home, tmp_path: Path) -> None:
    """The verb that starts a program loads neither the runtime nor OpenCV; what is refused is not tried again."""
    ear = Ear(home, tmp_path)
    folder = program(tmp_path, "notify-send")
    life = Life(home, tmp_path)
    notices.leave(life.state / notices.FOLDER, "t", "a")
    heard = ear.run("notify", "--config", str(life.file), path=str(folder))
    assert "subprocess.Popen" in heard["heard"]
    assert not {"onnxruntime", "cv2", "numpy", "watcher.session"} & set(heard["modules"])
    assert said(tmp_path) == [["--app-name=depth-watcher", "--", "t", "a"]]
    (folder / "notify-send").write_text("#!/bin/sh\nexit 3\n")
    notices.leave(life.state / notices.FOLDER, "t", "b")
    ear.run("notify", "--config", str(life.file), path=str(folder), code=69)
    assert list((life.state / notices.FOLDER).iterdir()) == []


# -- the helper's files -------------------------------------------------------------------------------------------


def values() -> dict[str, Any]:
    found = plistlib.loads(notifier.render(FILLING))
    assert isinstance(found, dict)
    return found


def test_rendered() -> None:
    """The helper's plist starts the verb when the folder is not empty, and keeps nothing alive."""
    found = values()
    assert found["QueueDirectories"] == ["/U/s/n"]
    assert found["ProgramArguments"][1:] == ["-m", "watcher", "notify", "--config", "/Users/a/c.yaml"]
    assert not {"KeepAlive", "RunAtLoad"} & set(found)
    assert b"@" not in notifier.render(FILLING)


@pytest.mark.parametrize("spool", [None, Path("relative"), Path("/a\x01")])
def test_bad_paths(spool: Path | None) -> None:
    """What launchd would not take is refused in words."""
    with pytest.raises(UsageError):
        notifier.render(plist.Filling(FILLING.python, FILLING.config, FILLING.work, FILLING.logs, spool=spool))


@pytest.fixture
def launchctl(home: Home, monkeypatch: pytest.MonkeyPatch) -> FakeLaunchctl:
    fake = FakeLaunchctl()
    monkeypatch.setattr(agent, "_MAC", True)
    monkeypatch.setattr(agent, "Tools", lambda _: Tools(fake, fake.now_s, fake.pause))
    monkeypatch.setattr(asking, "alive", lambda _, pid: pid in fake.living)
    monkeypatch.setattr(os, "getuid", lambda: UID)
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    return fake


def settings_of(place: Path, *, notify: bool) -> config.Settings:
    file = place / "c.yaml"
    file.write_text(f"notify: {str(notify).lower()}\n")
    return config.load(file)


def test_install_and_uninstall(launchctl: FakeLaunchctl, tmp_path: Path) -> None:
    """With notify: true a second agent is loaded and never started by us; without, it goes; uninstall removes both."""
    on, off = settings_of(tmp_path, notify=True), settings_of(tmp_path, notify=False)
    file = agent.installed_file().with_name(notifier.TEMPLATE)
    one = agent.Agent(config.state_dir(on))
    one.install(agent.filling(on, tmp_path / "c.yaml"))
    assert set(launchctl.jobs) == {"io.depthwatcher.agent", notifier.LABEL}
    assert launchctl.jobs[notifier.LABEL].runs == 0
    assert (config.state_dir(on) / notices.FOLDER).is_dir()
    assert file.stat().st_mode & 0o777 == 0o644
    one.install(agent.filling(on, tmp_path / "c.yaml"))
    assert launchctl.jobs[notifier.LABEL].runs == 0
    one.install(agent.filling(off, tmp_path / "c.yaml"))
    assert set(launchctl.jobs) == {"io.depthwatcher.agent"}
    assert not file.exists()
    one.install(agent.filling(on, tmp_path / "c.yaml"))
    assert one.uninstall()
    assert launchctl.jobs == {}
    assert not file.exists()


def test_a_helper_that_is_refused(launchctl: FakeLaunchctl, tmp_path: Path) -> None:
    """A helper that launchd refuses is told as what it is: the agent itself runs."""
    on = settings_of(tmp_path, notify=True)
    launchctl.disabled.add(notifier.LABEL)
    launchctl.switched_off = True
    with pytest.raises(Unavailable, match="the agent runs, its notifications do not: the agent is switched off"):
        agent.Agent(config.state_dir(on)).install(agent.filling(on, tmp_path / "c.yaml"))
    assert launchctl.jobs["io.depthwatcher.agent"].pid is not None


@pytest.mark.parametrize("notify", [True, False])
def test_doctor(launchctl: FakeLaunchctl, tmp_path: Path, notify: bool) -> None:
    """A helper that is missing, or left over, is told with its remedy."""
    settings = settings_of(tmp_path, notify=notify)

    def finding() -> str:
        return next(
            f.state for f in service.service(settings, tmp_path / "c.yaml", agent.Survey()) if f.id == "notifications"
        )

    assert finding() == ("warning" if notify else "ok")
    agent.Agent(config.state_dir(settings)).install(agent.filling(settings, tmp_path / "c.yaml"))
    assert finding() == "ok"
    agent.installed_file().with_name(notifier.TEMPLATE).write_text("by hand")
    assert finding() == "warning"


# -- the whole way ------------------------------------------------------------------------------------------------


def test_whole_way(home: Home, tmp_path: Path) -> None:
    """A real daemon starts no program and leaves one notice for three pictures; the helper's own command shows it."""
    life = Life(home, tmp_path)
    life.settle(notify=True, watch={"settle_s": 0.1, "rescan_s": 0.5, "patience_s": 0.2})
    make_picture(life.inbox / "a.png")
    make_picture(life.inbox / "b.png")
    (life.inbox / f"{NASTY.replace('/', '')}").write_bytes(b"\x89PNG\r\n\x1a\n" + b"no picture" * 9)
    ear = Ear(home, tmp_path)
    process = ear.start("run", "--config", str(life.file))
    spool = life.state / notices.FOLDER
    try:
        until(lambda: spool.is_dir() and bool(list(spool.glob("*.notice"))), 60)
        process.terminate()
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert ear.heard()["heard"] == []
    folder = program(tmp_path, "notify-send")
    unit = notifier.units(plist.Filling(Path(sys.executable), life.file, life.state, tmp_path, spool=spool))
    command = next(
        line.partition("=")[2] for line in unit[notifier.SERVICE_UNIT].decode().splitlines() if "ExecStart" in line
    )
    env = {**home.env, "PATH": f"{folder}:{home.env['PATH']}"}
    subprocess.run(command.split(" "), env=env, check=True, timeout=60)
    (words,) = said(tmp_path)
    assert "2 depth maps are ready; 1 picture could not be done: a&quot;b" in words[-1].replace('"', "&quot;")
    assert list(spool.iterdir()) == []


def test_the_page_names_every_key() -> None:
    """docs/macos.md gives a reason for each key of both plists, and for no other."""
    page = (PROJECT / "docs" / "macos.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| key \| value \| why \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    keys = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in tables]
    assert [sorted(found) for found in keys] == [sorted(plist.SCHEMA), sorted(notifier.SCHEMA)]
