"""One process for a state folder and its inboxes, and the trace it leaves if it crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Home

from watcher import durable, instance, recovery
from watcher.errors import AnotherInstance, ExitCode

HOLD = """
import sys
from pathlib import Path
from watcher import instance
with instance.alone(Path(sys.argv[1]), [Path(arg) for arg in sys.argv[2:]], "4711 run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, home: Home) -> Path:
    for name in ("in", "in2"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("in")
    return tmp_path


@pytest.mark.parametrize(
    ("state", "inbox", "refused"),
    [
        ("state", "in", True),
        ("state", "in2", True),
        ("state2", "in", True),
        ("state2", "link", True),
        ("state2", "in2", False),
    ],
)
def test_two_processes(place: Path, home: Home, state: str, inbox: str, refused: bool) -> None:
    """Two processes share neither a state folder nor an inbox, by whatever path; the second says who is first."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place / "state"), str(place / "in")],
        env=home.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        if refused:
            with pytest.raises(AnotherInstance, match="4711") as caught:
                instance.alone(place / state, [place / inbox], "me").__enter__()
            assert caught.value.exit_code == ExitCode.TRY_LATER
        else:
            with instance.alone(place / state, [place / inbox], "me"):
                pass
        child.kill()
    with instance.alone(place / state, [place / inbox], "me"):
        assert durable.holder(place / state / "daemon.lock") == "me"
    assert durable.holder(place / state / "daemon.lock") is None


def test_a_refusal_gives_back_what_was_taken(place: Path) -> None:
    """Whoever is refused for an inbox does not keep the state folder."""
    with (
        instance.alone(place / "one", [place / "in"], "first"),
        pytest.raises(AnotherInstance),
        instance.alone(place / "two", [place / "in2", place / "in"], "second"),
    ):
        pass
    with instance.alone(place / "two", [place / "in2"], "third"):
        pass


def test_the_trace_of_a_crash(tmp_path: Path) -> None:
    """A process that dies in native code says so to the next start; one that ends says nothing."""
    code = """
import ctypes, sys
from pathlib import Path
from watcher import instance
with instance.crash_trace(Path(sys.argv[1])):
    if sys.argv[2] == "crash":
        ctypes.string_at(0)
"""
    for how, crashed in (("end", False), ("crash", True)):
        subprocess.run([sys.executable, "-c", code, str(tmp_path), how], check=False)
        assert ("Segmentation fault" in recovery.read_evidence(tmp_path).crash) is crashed
