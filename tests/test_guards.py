"""Each guard of conftest.py and pyproject.toml fires: proved on offenders, which are run as a suite of their own."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import PROJECT, make_picture
from PIL import Image

OFFENDERS = """
import subprocess, os, socket, sys, threading, types, warnings
import pytest

@pytest.fixture
def session(monkeypatch):
    room = types.ModuleType("watcher.session")
    room.open_count = lambda: 1
    monkeypatch.setitem(sys.modules, "watcher.session", room)

@pytest.fixture
def tidy():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    yield
    stop.set()

def test_nothing_wrong(tidy): subprocess.run([sys.executable, "-c", ""], check=True)

def test_thread(): threading.Thread(target=threading.Event().wait, daemon=True, name="forgotten").start()

def test_thread_dies():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()

def test_warning(): warnings.warn("old", DeprecationWarning)

def test_unclosed_file():
    open(__file__)

def test_popen(session): subprocess.run([sys.executable, "-c", ""])

def test_popen_swallowed(session):
    try:
        subprocess.run([sys.executable, "-c", ""])
    except Exception:
        pass

def test_fork(session):
    if os.fork() == 0:
        os._exit(0)

def test_system(session): os.system("true")

def test_posix_spawn(session): os.posix_spawn(sys.executable, ["python", "-c", ""], {})

def test_below_the_audit(session):
    import multiprocessing.util
    multiprocessing.util.spawnv_passfds(sys.executable.encode(), [b"python", b"-c", b""], [])

def test_popen_beside_a_real_session():
    from watcher import catalog, session
    with session.open_session(catalog.embedded_dir() / "starter.onnx"):
        subprocess.run([sys.executable, "-c", ""])

def test_leaked_session(request):
    room = types.ModuleType("watcher.session")
    room.open_count = lambda: 1
    sys.modules["watcher.session"] = room

def test_after_the_leak(): sys.modules.pop("watcher.session")

def test_network():
    with socket.socket() as s:
        s.connect(("192.0.2.1", 9))

def test_name_lookup(): socket.getaddrinfo("example.org", 80)

def test_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()

@pytest.mark.timeout(0.3)
def test_stall(): threading.Event().wait()

@pytest.mark.unheard_of
def test_marker(): pass
"""


Outcomes = dict[str, tuple[set[str], str]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What became of each offender: name -> ({PASSED, FAILED, ERROR}, the reasons); "" -> the whole report."""
    place = tmp_path_factory.mktemp("offenders")
    shutil.copy(Path(__file__).with_name("conftest.py"), place)
    marked = OFFENDERS.index("@pytest.mark.unheard_of")
    (place / "test_offenders.py").write_text(OFFENDERS[:marked], encoding="utf-8")
    (place / "test_marked.py").write_text("import pytest\n" + OFFENDERS[marked:], encoding="utf-8")
    line = [sys.executable, "-m", "pytest", "-c", str(PROJECT / "pyproject.toml"), "--rootdir", str(place)]
    line += ["--confcutdir", str(place), "-p", "no:cacheprovider", "--continue-on-collection-errors", "-rA", str(place)]
    run = subprocess.run(
        line,
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=100,
        check=False,
        env={**os.environ, "CI": "true"},  # the summary is not cut to a terminal's width
    )
    found: Outcomes = {"": (set(), run.stdout + run.stderr)}
    for outcome, name, reason in re.findall(r"^(PASSED|FAILED|ERROR) (?:\S*::)?(\S+)(.*)", run.stdout, re.MULTILINE):
        outcomes_so_far, reasons = found.get(name, (set(), ""))
        found[name] = (outcomes_so_far | {outcome}, reasons + reason)
    return found


@pytest.mark.parametrize("name", ["test_nothing_wrong", "test_loopback", "test_after_the_leak"])
def test_innocent(outcomes: Outcomes, name: str) -> None:
    """What is allowed passes: a child process without a session, loopback, a thread that a fixture ends."""
    assert outcomes[name][0] == {"PASSED"}, outcomes[""][1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_thread", "leaked threads: forgotten (daemon=True)"),
        ("test_thread_dies", "PytestUnhandledThreadExceptionWarning"),
        ("test_warning", "DeprecationWarning: old"),
        ("test_unclosed_file", "PytestUnraisableExceptionWarning"),
        ("test_popen", "subprocess.Popen while a session is open"),
        ("test_popen_swallowed", "subprocess.Popen while a session is open"),
        ("test_popen_beside_a_real_session", "subprocess.Popen while a session is open"),
        ("test_fork", "os.fork while a session is open"),
        ("test_system", "os.system while a session is open"),
        ("test_posix_spawn", "os.posix_spawn while a session is open"),
        ("test_below_the_audit", "_posixsubprocess.fork_exec while a session is open"),
        ("test_leaked_session", "leaked sessions: 1"),
        ("test_network", "connection to '192.0.2.1'"),
        ("test_name_lookup", "name look-up of 'example.org'"),
        ("test_stall", "Timeout"),
    ],
)
def test_offender(outcomes: Outcomes, name: str, reason: str) -> None:
    """Each offender fails, and for its own reason."""
    ending, reasons = outcomes[name]
    assert ending & {"FAILED", "ERROR"}, outcomes[""][1]
    assert reason in reasons


def test_unknown_marker(outcomes: Outcomes) -> None:
    """A misspelt marker is an error, not a test that is silently never chosen."""
    assert "'unheard_of' not found in `markers`" in outcomes[""][1]


def test_no_stall_for_ever() -> None:
    """Every test has a time limit without asking for one."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert 0 < settings["tool"]["pytest"]["ini_options"]["timeout"] <= 120


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock(name: str) -> None:
    """The lock has the official runtime, new enough, each OpenCV for its system, hashes for all, and names no place."""
    text = (PROJECT / name).read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+?)(?: ; (.*?))? \\\n    --hash=sha256:", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z]", text, re.MULTILINE)) > 20
    versions = {package: version for package, version, _ in pinned}
    assert tuple(map(int, versions["onnxruntime"].split(".")[:2])) >= (1, 31)
    assert "onnxruntime-silicon" not in versions
    markers = {package: marker for package, _, marker in pinned}
    assert markers["opencv-python"] == "sys_platform == 'darwin'"
    assert markers["opencv-python-headless"] == "sys_platform != 'darwin'"
    assert not re.search(r"https?:|file:|index-url|find-links", text)


# --- shape ----------------------------------------------------------------------------------------------------------

ROOMS = sorted((PROJECT / "watcher").rglob("*.py"))
BAD_NAMES = {"consumer", "worker", "manager", "pipeline", "core", "utils", "helpers", "common"} | {
    "queue", "http", "logging", "signal", "threading"
}  # fmt: skip


def _lengths(path: Path) -> list[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [((n.end_lineno or n.lineno) - n.lineno + 1, f"{path.relative_to(PROJECT)}:{n.name}") for n in nodes]


def test_functions_are_short() -> None:
    """No function is over 60 lines, and 95 of 100 have at most 40."""
    lengths = sorted(length for path in ROOMS for length in _lengths(path))
    assert [name for length, name in lengths if length > 60] == []
    assert lengths[int(len(lengths) * 0.95)][0] <= 40, lengths[int(len(lengths) * 0.95) :]


def test_modules_are_short_and_well_named() -> None:
    """No module is over 300 lines, and none has a name that says nothing or hides the standard library."""
    lines = {str(p.relative_to(PROJECT)): len(p.read_text(encoding="utf-8").splitlines()) for p in ROOMS}
    assert {name: n for name, n in lines.items() if n > 300} == {}
    assert [str(p) for p in ROOMS if p.stem in BAD_NAMES] == []


@pytest.mark.parametrize("kind", ["gradient", "noise", "flat", "gray", "gray16", "alpha", "palette"])
def test_picture(tmp_path: Path, kind: str) -> None:
    """The pictures of the tests are of the size asked for, and another name gives another content."""
    first, second = make_picture(tmp_path / "a.png", (40, 30), kind), make_picture(tmp_path / "b.png", (40, 30), kind)
    with Image.open(first) as image:
        assert image.size == (40, 30)
    if not kind.startswith("gray"):
        assert first.read_bytes() != second.read_bytes()
