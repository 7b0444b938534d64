"""The process that holds the session starts no other one, whichever way that could be done. Watched from inside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Home, make_picture
from living import Life
from waiting import until

from watcher import status

# Runs the real program with an ear on every audited way, and on the one below them all that is not audited.
EAR = """
import json, os, sys, threading
heard = []
WAYS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "pty.spawn"}
sys.addaudithook(lambda event, args: heard.append(event) if event in WAYS else None)
import _posixsubprocess
real = _posixsubprocess.fork_exec
def fork_exec(*args):
    heard.append("fork_exec")
    return real(*args)
_posixsubprocess.fork_exec = fork_exec
import atexit
def tell():
    with open(os.environ["EAR"], "w") as file:
        json.dump({"heard": heard, "modules": sorted(sys.modules)}, file)
atexit.register(tell)
from watcher import cli
%s
sys.argv[0] = "depth-watcher"
cli.main()
"""
OFFENCES = {
    "subprocess.Popen": "import subprocess; subprocess.run(['true'])",
    "os.system": "os.system('true')",
    "os.posix_spawn": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    "fork_exec": "import multiprocessing.util as u; os.waitpid(u.spawnv_passfds(b'/bin/true', [b'true'], []), 0)",
}


class Ear:
    def __init__(self, home: Home, place: Path) -> None:
        self.home, self.place = home, place
        self.told = place / "heard.json"

    def start(self, *words: str, before: str = "", path: str = "") -> subprocess.Popen[str]:
        env = {**self.home.env, "EAR": str(self.told)}
        if path:
            env["PATH"] = f"{path}:{env['PATH']}"
        return subprocess.Popen(
            [sys.executable, "-c", EAR % before, *words],
            env=env,
            cwd=self.home.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, before: str = "", path: str = "", code: int = 0) -> dict[str, Any]:
        process = self.start(*words, before=before, path=path)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == code, said
        return self.heard()

    def heard(self) -> dict[str, Any]:
        found = json.loads(self.told.read_text())
        assert isinstance(found, dict)
        return found


@pytest.fixture
def ear(home: Home, tmp_path: Path) -> Ear:
    return Ear(home, tmp_path)


@pytest.mark.parametrize("way", list(OFFENCES))
def test_the_ear_hears(ear: Ear, way: str) -> None:
    """Each way of starting a process is heard, or the tests below would prove nothing."""
    assert way in ear.run("--version", before=OFFENCES[way])["heard"]


def test_daemon(ear: Ear, home: Home, tmp_path: Path) -> None:
    """From start to end, with a picture that is done, one that fails, and a line on demand: no process."""
    life = Life(home, tmp_path)
    make_picture(life.inbox / "a.png")
    (life.inbox / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"no picture" * 9)
    life.settle(watch={"settle_s": 0.1, "rescan_s": 0.5, "patience_s": 0.2})
    process = ear.start("run", "--config", str(life.file))
    try:
        until(lambda: status.read(life.state).counts.done == 1 and status.read(life.state).counts.failed == 1, 60)
        process.send_signal(signal.SIGUSR1)
        make_picture(life.inbox / "c.jpg")
        until(lambda: status.read(life.state).counts.done == 2)
        process.terminate()
        said, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said
    assert "depth-watcher: running: " in said
    assert ear.heard()["heard"] == []
    assert "onnxruntime" in ear.heard()["modules"]


def test_once_and_depth(ear: Ear, home: Home, tmp_path: Path) -> None:
    """Neither do the verbs that make maps and end."""
    life = Life(home, tmp_path)
    picture = make_picture(life.inbox / "a.png")
    assert ear.run("depth", str(picture), "-o", str(tmp_path / "maps"))["heard"] == []
    assert ear.run("once", "--config", str(life.file))["heard"] == []
    assert life.maps() == ["a_depth.png"]


def script(place: Path, name: str, text: str) -> str:
    folder = place / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return str(folder)


MAC = "import watcher.agent as a; a._MAC = True"


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (("start",), ""),
        (("status",), ""),
        (("stop",), ""),
        (("restart",), ""),
        (("uninstall",), ""),
        (("start",), MAC),
        (("status",), MAC),
        (("stop",), MAC),
    ],
)
def test_what_starts_programs_holds_no_runtime(ear: Ear, home: Home, words: tuple[str, ...], before: str) -> None:
    """The verbs that ask launchctl or systemctl do start it, and hold neither the runtime nor OpenCV meanwhile."""
    for file in (
        home.path / ".config" / "systemd" / "user" / "depth-watcher.service",
        home.path / "Library" / "LaunchAgents" / "io.depthwatcher.agent.plist",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("nothing")
    path = script(home.path, "systemctl", "exit 4")
    script(home.path, "launchctl", "exit 112")
    process = ear.start(*words, before=before, path=path)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == (0 if words == ("status",) else 69), said
    heard = ear.heard()
    assert "subprocess.Popen" in heard["heard"]
    assert not {"onnxruntime", "cv2", "numpy", "watcher.session"} & set(heard["modules"])


def test_a_process_in_the_daemon_is_logged(home: Home, tmp_path: Path) -> None:
    """Should it ever happen in production, the log says so."""
    code = (
        "import logging, sys, os; logging.basicConfig(stream=sys.stdout)\n"
        "from watcher.daemon import beginning; beginning.listen_for_processes(); os.system('true')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=home.env, capture_output=True, text=True, check=True)
    assert "a process was started beside the session (os.system)" in done.stdout


@pytest.mark.parametrize(
    "name", ["platform.platform(", "platform.processor(", "platform.uname(", "os.popen", "getnode"]
)
def test_no_hidden_forks(name: str) -> None:
    """Innocent-looking calls of the standard library that start a process are used nowhere."""
    package = Path(status.__file__).parent
    assert [str(file) for file in package.rglob("*.py") if name in file.read_text(encoding="utf-8")] == []


SERVER = """
import os, sys, threading
from pathlib import Path
place, inbox, outbox = map(Path, sys.argv[1:])
from watcher import imagefile  # what the original loaded before it forked, short of the session
workers = []
for number in range(4):
    pid = os.fork()
    if not pid:
        os.rename(place / f"{number}.png", inbox / f"{number}.png")
        for _ in range(1500):
            if (outbox / f"{number}_depth.png").exists():
                os._exit(0)
            threading.Event().wait(0.02)
        os._exit(1)
    workers.append(pid)
sys.exit(sum(bool(os.waitpid(pid, 0)[1]) for pid in workers))
"""


def test_server_that_forks(tmp_path: Path, home: Home) -> None:
    """The shape of the original failure: a server that forks four workers, each of which wants a map.

    The session lives in the daemon, so there is nothing in the workers that a fork could have broken: all four get
    theirs.
    """
    life = Life(home, tmp_path)
    for number in range(4):
        make_picture(tmp_path / f"{number}.png")
    with life.running():
        words = [sys.executable, "-c", SERVER, str(tmp_path), str(life.inbox), str(life.outbox)]
        assert subprocess.run(words, env=home.env, timeout=60, check=False).returncode == 0
    assert life.maps() == [f"{number}_depth.png" for number in range(4)]
