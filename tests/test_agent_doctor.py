"""What doctor says of the agent, and the report that can be sent to strangers."""

from __future__ import annotations

import json
import os
import plistlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT, Home, RunCli, make_picture
from fake_launchctl import UID, FakeLaunchctl
from living import Life

from watcher import agent, clock, config, darwin
from watcher.agent import Survey, launchd, plist
from watcher.agent.asking import Answer, Tools
from watcher.agent.survey import of_mac, sleep_settings
from watcher.doctor import machine, points, report, service
from watcher.doctor.finding import Finding
from watcher.errors import Unavailable


@pytest.fixture
def mac(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(agent, "_MAC", True)
    return home.path


def found(survey: Survey | None = None) -> dict[str, Finding]:
    settings = config.load(None)
    return {finding.id: finding for finding in service.service(settings, Path("/c.yaml"), survey or Survey())}


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
    finding = found(Survey(said))["agent"]
    assert finding.state == state
    assert bool(finding.remedy) == (state != "ok")


def test_drift(mac: Path) -> None:
    """A plist that an older version, or a hand, has written is told with the keys that differ."""
    fill = agent.filling(config.load(None), Path("/c.yaml"), background=True)
    plist.write(agent.installed_file(), plist.render(fill))
    assert found()["agent-file"].state == "ok"
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
    assert told["coreml"]["trials"] == []
    assert told["coreml"]["nodes"]["cpu"] > 0
    assert "found" not in states["folder-1-inbox"]
    assert told["system"]["open_files"][0] > 0
    assert "is there already" in run_cli("doctor", "--config", life.file, "--report", file).stderr


def test_paths_go() -> None:
    """Words that may be a place are left out, whatever finding they stand in."""
    findings = [Finding("agent", "agent", "ok", "x: running ('/Users/a/b' ~/c process 3", "")]
    told = report.make(findings, Survey(), config.load(None))
    assert told["findings"][0]["found"] == "x: running <path> <path> process 3"


@pytest.mark.parametrize(("off", "state"), [(None, "warning"), (True, "problem"), (False, "ok")])
def test_login_item(mac: Path, off: bool | None, state: str) -> None:
    """The switch that a person may have turned is a row of its own, also where nobody could ask for it."""
    finding = found(Survey(switched_off=off))["login-item"]
    assert (finding.state, bool(finding.remedy)) == (state, state != "ok")


def test_a_trace_of_a_crash(home: Home) -> None:
    """On every system what the daemon's last process left when it died in native code is told."""
    assert found()["crashes"].state == "ok"
    state = config.state_dir(config.load(None))
    state.mkdir(parents=True)
    (state / "crash.log").write_text("Fatal Python error: Segmentation fault")
    assert found()["crashes"].state == "warning"


# -- the machine --------------------------------------------------------------------------------------------------

PMSET = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 powernap             1
 sleep                10 (sleep prevented by sharingd)
 lowpowermode         0
 displaysleep         10
"""


def rows(survey: Survey | None = None) -> dict[str, Finding]:
    return {finding.id: finding for finding in machine.machine(survey or Survey())}


def test_what_pmset_says() -> None:
    """The lines that say when the machine sleeps, and none of the others."""
    assert sleep_settings(PMSET) == {"standby": "1", "powernap": "1", "sleep": "10", "lowpowermode": "0"}
    assert sleep_settings("nonsense") == {}


@pytest.mark.parametrize(
    ("sleep", "state", "remedy"),
    [
        ({}, "ok", ""),
        ({"sleep": "0"}, "ok", ""),
        ({"sleep": "10"}, "warning", "after 10 minutes"),
        ({"sleep": "0", "lowpowermode": "1"}, "warning", "Low Power Mode"),
    ],
)
def test_sleep(mac: Path, sleep: dict[str, str], state: str, remedy: str) -> None:
    """A Mac that sleeps, or that saves power, is told; how one likes it is no problem."""
    finding = rows(Survey(sleep=sleep))["sleep"]
    assert finding.state == state
    assert remedy in finding.remedy


def test_rosetta(mac: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Intel Python is a problem, and so is a native-looking one that runs translated."""
    names = os.uname_result(("Darwin", "mac", "25", "x", "arm64"))
    monkeypatch.setattr(os, "uname", lambda: names)
    assert rows()["architecture"].state == "ok"
    monkeypatch.setattr(darwin, "translated", lambda: True)
    assert "Rosetta" in rows()["architecture"].found
    monkeypatch.setattr(darwin, "translated", lambda: False)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Darwin", "mac", "25", "x", "x86_64")))
    assert rows()["architecture"].state == "problem"


@pytest.mark.parametrize(
    ("build", "state"), [("macOS 13.6 (22G120)", "problem"), ("macOS 26.1 (25B78)", "ok"), ("", "ok")]
)
def test_system(mac: Path, monkeypatch: pytest.MonkeyPatch, build: str, state: str) -> None:
    """A macOS for which the runtime has no wheel is a problem."""
    monkeypatch.setattr(agent, "os_build", lambda: build)
    assert rows()["system"].state == state


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        ("/opt/homebrew/Cellar/python@3.12/3.12.4/Frameworks/Python.framework/Versions/3.12", "Homebrew"),
        ("/Library/Frameworks/Python.framework/Versions/3.12", "python.org"),
        ("/Users/a/.local/share/uv/python/cpython-3.12.4-macos-aarch64-none", "uv"),
        ("/Library/Developer/CommandLineTools/Library/Frameworks/Python3.framework", "Apple's command line tools"),
        ("/usr", "another Python"),
    ],
)
def test_python_origin(prefix: str, name: str) -> None:
    """Who made a Python is told by where it lies."""
    assert agent.python_origin(prefix) == name


def test_apples_python(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apple's own is a problem, one whose path goes away a warning."""
    assert rows()["agent-python"].state == "ok"
    monkeypatch.setattr(agent, "python_warning", lambda: "it goes away")
    assert rows()["agent-python"].state == "warning"
    monkeypatch.setattr(agent, "python_origin", lambda: "Apple's Xcode")
    assert rows()["agent-python"].state == "problem"


# -- the open points ----------------------------------------------------------------------------------------------


def test_survey(home: Home) -> None:
    """What launchctl and pmset say arrives; a plist behind a link is tried only where asked, and goes again."""
    fake = FakeLaunchctl()

    def pmset(words: Sequence[str]) -> Answer:
        return Answer(0, PMSET)

    launchctl = Tools(fake, fake.now_s, fake.pause)
    keeper = launchd.Launchd(launchctl, UID, home.path / "x.plist", Path())
    taken = of_mac("said", keeper, launchctl, Tools(pmset), probing=False)
    assert (taken.words, taken.switched_off, taken.sleep["sleep"], taken.symlink) == ("said", False, "10", "")
    assert "bootstrap" not in fake.calls
    taken = of_mac("said", keeper, launchctl, Tools(pmset), probing=True)
    assert taken.symlink.startswith("refused with ")
    assert fake.calls.count("bootout") == 1
    assert fake.jobs == {}


def test_a_mac_that_cannot_be_asked(home: Home) -> None:
    """Where a program is missing the survey is empty, and doctor goes on."""

    def missing(words: Sequence[str]) -> Answer:
        raise Unavailable("this system has no launchctl")

    tools = Tools(missing)
    keeper = launchd.Launchd(tools, UID, home.path / "x.plist", Path())
    taken = of_mac("", keeper, tools, tools, probing=True)
    assert (taken.switched_off, taken.sleep, taken.default_exit_timeout) == (None, {}, "")


def at(told: dict[str, Any], path: str) -> Any:
    for key in path.split("."):
        told = told[key]
    return told


def test_every_open_point_is_answered(home: Home) -> None:
    """Each point names fields that every report has, and the page shows the same numbers and fields."""
    told = report.make([], Survey(), config.load(None))
    for point in points.POINTS:
        for path in point.fields:
            at(told, path)  # KeyError: the report does not have it
        assert point.fields
    assert [question["point"] for question in told["questions"]] == [p.number for p in points.POINTS if p.ask]
    page = (PROJECT / "docs" / "macos.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d) \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
    assert [(int(number), tuple(re.findall(r"`([\w.]+)`", fields))) for number, fields in table] == [
        (point.number, point.fields) for point in points.POINTS
    ]


def test_what_finder_does_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Years of birth that Finder gives to what it copies, and files only in iCloud: numbers, no names."""

    class State:
        st_mode, st_flags, st_birthtime = 0o100644, 0x40000000, -753000000.0

    monkeypatch.setattr(points, "_states", lambda _: [State(), State()])
    told = points.answers(config.load(None), [], Survey())
    assert told["finder"] == {"busy_years": {"1946": 2}}
    assert told["icloud"]["dataless"] == 2


def test_clocks() -> None:
    """The two clocks whose difference tells whether one stops in sleep are there on every system."""
    found = clock.readings()
    assert found["monotonic_s"] > 0
    assert found["since_boot_s"] > 0
