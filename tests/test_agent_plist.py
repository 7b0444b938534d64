"""The plist: filled in, held to its schema, and written so that launchd takes it."""

from __future__ import annotations

import copy
import os
import plistlib
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import PROJECT

from watcher import daemon
from watcher.agent import origin, plist, protected
from watcher.agent_label import LABEL
from watcher.errors import UsageError

FILLING = plist.Filling(
    Path("/opt/venv/bin/python"), Path("/Users/a/c.yaml"), Path("/Users/a/state"), Path("/Users/a/Library/Logs/d")
)


def values(filling: plist.Filling = FILLING) -> dict[str, Any]:
    found = plistlib.loads(plist.render(filling))
    assert isinstance(found, dict)
    return found


def test_rendered() -> None:
    """Every open place is filled, and what launchd is to run is the command that a terminal would take."""
    found = values()
    assert found["ProgramArguments"] == [
        *("/opt/venv/bin/python", "-m", "watcher", "run", "--config", "/Users/a/c.yaml"),
    ]
    assert found["Label"] == LABEL
    assert found["StandardErrorPath"] == "/Users/a/Library/Logs/d/agent.err.log"
    assert b"@" not in plist.render(FILLING)


def test_time_to_stop() -> None:
    """launchd waits longer before it kills than the daemon needs to end, and the room knows the template's number."""
    assert values()["ExitTimeOut"] == plist.EXIT_TIMEOUT_S > 2 * daemon.STOP_BUDGET_S


def test_only_a_clean_ending_is_left_alone() -> None:
    """The polarity that is so often inverted: started again unless it ended with 0."""
    assert values()["KeepAlive"] == {"SuccessfulExit": False}


@pytest.mark.parametrize("name", ["a b", "R&D <1>", "it's", 'say "x"', "Ü 写真", "@PYTHON@", "$HOME", "100%"])
def test_names_of_any_kind(name: str) -> None:
    """Whatever a folder is called arrives as it is, also what looks like one of our own words."""
    filling = plist.Filling(Path(f"/{name}/python"), Path(f"/{name}/c"), Path(f"/{name}"), Path(f"/{name}/logs"))
    found = values(filling)
    assert found["ProgramArguments"][0] == f"/{name}/python"
    assert found["WorkingDirectory"] == f"/{name}"


def test_control_characters() -> None:
    """A plist cannot hold them; the error says so instead of a trace of the library."""
    with pytest.raises(UsageError, match="control character"):
        plist.render(plist.Filling(Path("/a\x01/python"), Path("/c"), Path("/w"), Path("/l")))


def test_background() -> None:
    """Asked for, the agent is a background process; nothing else changes."""
    filling = plist.Filling(FILLING.python, FILLING.config, FILLING.work, FILLING.logs, background=True)
    assert plist.drift(values(filling), FILLING) == ["ProcessType"]


BROKEN: list[tuple[str, Any]] = [
    ("Label", "com.example"),
    ("ProgramArguments", "python -m watcher"),
    ("ProgramArguments", ["~/venv/bin/python", "-m"]),
    ("ProgramArguments", ["python", "-m", "watcher"]),
    ("ProgramArguments", ["/python", 1]),
    ("RunAtLoad", 1),
    ("KeepAlive", True),
    ("KeepAlive", {"SuccessfulExit": True}),
    ("KeepAlive", {"SuccessfulExit": False, "Crashed": False}),
    ("ThrottleInterval", "10"),
    ("ThrottleInterval", 1),
    ("ExitTimeOut", 0),
    ("ExitTimeOut", True),
    ("ProcessType", "interactive"),
    ("LimitLoadToSessionType", "Background"),
    ("MaterializeDatalessFiles", False),
    ("WorkingDirectory", "~/x"),
    ("StandardOutPath", "$HOME/x"),
    ("Umask", 77),
    ("Umask", "999"),
    ("SoftResourceLimits", {"NumberOfFile": 4096}),
    ("HardResourceLimits", {"NumberOfFiles": 1 << 63}),
    ("EnvironmentVariables", {"ORT_DISABLE_TELEMETRY": 1}),
    ("TimeOut", 30),
    ("OnDemand", True),
    ("Disabled", False),
    ("UserName", "root"),
]


@pytest.mark.parametrize(("key", "value"), BROKEN)
def test_slips_are_found(key: str, value: Any) -> None:
    """launchd passes over slips in silence, so ours are found before it sees them; each names its key."""
    found = copy.deepcopy(values())
    found[key] = value
    problems = plist.check(found)
    assert len(problems) == 1
    assert problems[0].startswith(f"{key}: ")


@pytest.mark.parametrize("key", list(plist.SCHEMA))
def test_nothing_is_left_out(key: str) -> None:
    """Every key of the schema is in the plist, and its absence is a mistake."""
    found = values()
    del found[key]
    assert plist.check(found) == [f"{key}: is missing"]


def test_explained_key_by_key() -> None:
    """docs/macos.md gives a reason for each key, and for none that is not there."""
    text = (PROJECT / "docs" / "macos.md").read_text(encoding="utf-8")
    table = text.partition("## The plist, key by key")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(values())


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_mode(tmp_path: Path, mask: int) -> None:
    """launchd refuses a plist that others may write: the mode is 0644 whatever the umask, and the umask comes back."""
    before = os.umask(mask)
    try:
        plist.write(tmp_path / "Launch Agents" / "a.plist", b"x")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "Launch Agents" / "a.plist").stat().st_mode == 0o100644
    assert os.listdir(tmp_path / "Launch Agents") == ["a.plist"]


@pytest.mark.parametrize("data", [b"", b"\0", b"<plist>", b"bplist00", b"<plist><array/></plist>", b"\xff" * 99])
def test_reading_what_is_none(tmp_path: Path, data: bytes) -> None:
    """A file that is no plist is told apart from a plist, not a trace."""
    file = tmp_path / "a.plist"
    file.write_bytes(data)
    assert plist.read(file) is None
    assert plist.read(tmp_path / "none") is None


def test_homebrew_python(tmp_path: Path) -> None:
    """The path that Homebrew removes at its next patch is replaced by the one that stays, where that exists."""
    cellar = tmp_path / "Cellar" / "python@3.12" / "3.12.4" / "bin" / "python3.12"
    stable = tmp_path / "opt" / "python@3.12" / "bin" / "python3.12"
    assert origin.python_for_plist(str(cellar)) == cellar
    stable.parent.mkdir(parents=True)
    stable.touch()
    assert origin.python_for_plist(str(cellar)) == stable


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The environment's own python is taken as it is: what it points to changes with every upgrade."""
    link = tmp_path / "python"
    link.symlink_to("/usr/bin/env")
    assert origin.python_for_plist(str(link)) == link


@pytest.mark.parametrize("path", ["/usr/bin/python3", "/Library/Developer/CommandLineTools/usr/bin/python3", ""])
def test_pythons_that_will_not_do(path: str) -> None:
    """Apple's Python changes with Xcode, and no path is no path."""
    with pytest.raises(UsageError):
        origin.python_for_plist(path)


def test_environment_of_a_versioned_python(tmp_path: Path) -> None:
    """An environment that was made with Homebrew's versioned path is warned of; another is not."""
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/homebrew/Cellar/python@3.12/3.12.4/bin\nversion = 3.12.4\n")
    assert "Homebrew removes" in origin.python_warning(tmp_path)
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/homebrew/opt/python@3.12/bin\n")
    assert origin.python_warning(tmp_path) == ""
    assert origin.python_warning(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/Users/a/Desktop", "the Desktop"),
        ("/Users/a/desktop/in", "the Desktop"),
        ("/Users/a/Documents/x/y", "Documents"),
        ("/Users/a/Library/Mobile Documents/com~apple~CloudDocs/in", "iCloud Drive"),
        ("/Users/a/Library/CloudStorage/Dropbox", "a cloud drive"),
        ("/Volumes/Card/DCIM", "another volume"),
        ("/Users/a/DepthWatcher/inbox", ""),
        ("/Users/a/Desktops", ""),
        ("/Users/b/Desktop", ""),
        ("/Volumes", ""),
    ],
)
def test_guarded_places(path: str, name: str) -> None:
    """What macOS guards is named; what lies beside it is not."""
    assert protected.guarded(Path(path), Path("/Users/a")) == name


def test_clicks_name_the_very_file(tmp_path: Path) -> None:
    """The list in System Settings wants the program itself, not a link to it."""
    real = tmp_path / "python3.12"
    real.touch()
    (tmp_path / "python").symlink_to(real)
    assert f"enter {real.resolve()} " in protected.clicks(tmp_path / "python")
