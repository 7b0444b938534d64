"""Guards that every test runs under, and the few fixtures that all rooms share.

A test fails when it leaves a thread or a session behind, when it starts a process while a session is open, when it
talks to anything but this machine, and (``filterwarnings`` in pyproject.toml) when anything warns.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

PROJECT = Path(__file__).resolve().parents[1]
CORPUS = Path(__file__).parents[1] / "../shared/corpus"
JOIN_S = 2.0  # how long a thread that was told to end may take to do so

# Whoever starts the tests with nohup, or in the background of a shell without job control, has told every program
# below to ignore one of these, and the daemon would obey.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# --- guards ---------------------------------------------------------------------------------------------------------

STARTS_A_PROCESS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "pty.spawn"}
)


class ForkWhileSessionOpen(RuntimeError):
    """The bug that this project was born from: a process was about to be started beside an open session."""


class BeyondLoopback(RuntimeError):
    """A test was about to talk to another machine."""


_broken: list[str] = []  # kept beside the exception: code under test may swallow that


def open_sessions() -> int:
    """How many sessions this process holds; 0 while nobody has imported the room."""
    count = getattr(sys.modules.get("watcher.session"), "open_count", None)
    return int(count()) if callable(count) else 0


def _refuse(error: type[RuntimeError], what: str) -> None:
    _broken.append(f"{error.__name__}: {what}")
    raise error(what)


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(host).split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if event in STARTS_A_PROCESS:
        if open_sessions():
            _refuse(ForkWhileSessionOpen, f"{event} while a session is open")
    elif event == "socket.getaddrinfo":
        if not _is_local(args[0]):
            _refuse(BeyondLoopback, f"name look-up of {args[0]!r}")
    elif event == "socket.connect" and isinstance(args[1], tuple) and not _is_local(args[1][0]):
        _refuse(BeyondLoopback, f"connection to {args[1][0]!r}")


def _guard_fork_exec() -> None:
    """``multiprocessing`` starts its children below the audited calls."""
    import _posixsubprocess

    real = _posixsubprocess.fork_exec

    def fork_exec(*args: Any) -> int:
        if open_sessions():
            _refuse(ForkWhileSessionOpen, "_posixsubprocess.fork_exec while a session is open")
        return int(real(*args))

    _posixsubprocess.fork_exec = fork_exec


sys.addaudithook(_listen)
_guard_fork_exec()


def _left_over(before: set[threading.Thread]) -> list[str]:
    for thread in set(threading.enumerate()) - before:
        if thread is not threading.current_thread():
            thread.join(JOIN_S)
    return sorted(f"{t.name} (daemon={t.daemon})" for t in set(threading.enumerate()) - before if t.is_alive())


@pytest.fixture(autouse=True)
def _guards() -> Iterator[None]:
    """First in, last out: what the other fixtures of a test clean up is not held against it."""
    threads, sessions = set(threading.enumerate()), open_sessions()
    _broken.clear()
    yield
    leaked = _left_over(threads)
    problems = list(_broken)
    _broken.clear()
    if leaked:
        problems.append(f"leaked threads: {', '.join(leaked)}")
    if open_sessions() > sessions:
        problems.append(f"leaked sessions: {open_sessions() - sessions}")
    if problems:
        pytest.fail("; ".join(problems), pytrace=False)


# --- places ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Home:
    """A user's home of its own: ``env`` is the whole environment for a child process."""

    path: Path
    env: dict[str, str] = field(repr=False)


def _home_env(home: Path) -> dict[str, str]:
    folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local/share",
        "XDG_STATE_HOME": home / ".local/state",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": home / ".run",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {name: str(folder) for name, folder in folders.items()}


@pytest.fixture(scope="session", autouse=True)
def _not_the_users_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the settings, the models or the journal of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _home_env(tmp_path_factory.mktemp("nobody")).items():
            patch.setenv(name, value)
        patch.delenv("DEPTH_WATCHER_CONFIG", raising=False)
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home, for this process and, as ``home.env``, for its children."""
    ours = _home_env(tmp_path / "home")
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    kept = {k: v for k, v in os.environ.items() if k in ("LANG", "TMPDIR") or k.startswith(("LC_", "OPENBLAS"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return Home(tmp_path / "home", {**kept, **ours, "PATH": path})


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real pictures beside the project."""
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus does not lie beside this checkout")
    return CORPUS


# --- the installed command ------------------------------------------------------------------------------------------


def command() -> str:
    """Path of ``depth-watcher`` as it was installed beside the running Python."""
    installed = Path(sys.executable).with_name("depth-watcher")
    if not installed.exists():
        pytest.fail("depth-watcher is not installed beside this Python: run make setup", pytrace=False)
    return str(installed)


RunCli = Callable[..., "subprocess.CompletedProcess[str]"]
StartCli = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def run_cli(home: Home) -> RunCli:
    """``run_cli("status", "--json", timeout=60, cwd=…, env={…})``: the installed command in an empty home."""

    def run(
        *args: str | Path, timeout: float = 60, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command(), *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            cwd=cwd or home.path,
            env={**home.env, **(env or {})},
            check=False,
        )

    return run


@pytest.fixture
def start_cli(home: Home) -> Iterator[StartCli]:
    """Like ``run_cli``, but hands out the running process; whatever still runs after the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [command(), *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=cwd or home.path,
            env={**home.env, **(env or {})},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


# --- pictures -------------------------------------------------------------------------------------------------------


def _pixels(size: tuple[int, int], kind: str, seed: int) -> Any:
    width, height = size
    random = np.random.default_rng(seed)
    ramp = np.add.outer(np.linspace(0, 1, height), np.linspace(0, 1, width)) / 2
    if kind == "flat":
        return np.full((height, width, 3), seed % 256, np.uint8)
    if kind == "noise":
        return random.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "gray":
        return (ramp * 255).astype(np.uint8)
    if kind == "gray16":
        return (ramp * 65535).astype(np.uint16)
    colour = (ramp[..., None] * random.uniform(80, 255, 3)).astype(np.uint8)
    if kind == "alpha":
        return np.dstack([colour, (ramp * 255).astype(np.uint8)])
    if kind in ("gradient", "palette"):
        return colour
    raise ValueError(f"no such kind of picture: {kind}")


def make_picture(path: Path, size: tuple[int, int] = (64, 48), kind: str = "gradient") -> Path:
    """Write a small picture and give back its path.

    ``size`` is (width, height) in pixels; the suffix chooses the format. ``kind`` is gradient, noise, flat, gray,
    gray16, alpha or palette. Same name, same content; another name, another content. Raises ``ValueError`` on an
    unknown kind.
    """
    image = Image.fromarray(_pixels(size, kind, zlib.crc32(path.name.encode("utf-8", "surrogateescape"))))
    path.parent.mkdir(parents=True, exist_ok=True)
    (image.quantize(16) if kind == "palette" else image).save(path)
    return path


@pytest.fixture
def picture() -> Callable[..., Path]:
    """``picture(path, size=(width, height), kind="gradient")``: see ``make_picture``."""
    return make_picture
