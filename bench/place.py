"""Where a benchmark happens: a folder of its own with settings, and child processes that see no other home."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Place:
    """One home: ``inbox``, ``outbox``, a state folder and a settings file."""

    root: Path

    @property
    def inbox(self) -> Path:
        return self.root / "inbox"

    @property
    def outbox(self) -> Path:
        return self.root / "outbox"

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def lay_out(self, model: Path, *, after: str = "move", **more: Any) -> Path:
        """Write the settings (YAML takes JSON) and make the inbox; returns the settings file."""
        self.inbox.mkdir(parents=True, exist_ok=True)
        folder = {"inbox": str(self.inbox), "outbox": str(self.outbox), "after": after}
        settings = {
            "folders": [folder],
            "model": {"name": str(model), "provider": "cpu"},
            "state_dir": str(self.state),
            "log": {"file": str(self.root / "log.txt"), "level": "warning"},
            **more,
        }
        self.config.write_text(json.dumps(settings))
        return self.config

    def env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        home = {f"XDG_{part}_HOME": str(self.root / part.lower()) for part in ("CONFIG", "DATA", "STATE", "CACHE")}
        return {**kept, **home, "HOME": str(self.root), "PYTHONPATH": str(PROJECT)}


@contextmanager
def place() -> Iterator[Place]:
    """An empty place that is gone afterwards. On a disk, not in memory: syncing must cost what it costs."""
    base = Path(os.environ.get("BENCH_DIR", PROJECT / "build" / "bench"))
    base.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="run-", dir=base))
    try:
        yield Place(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def cache() -> Path:
    """Networks and pictures, made once."""
    folder = Path(os.environ.get("BENCH_DIR", PROJECT / "build" / "bench")) / "made"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def child(where: Place, mode: str, **task: Any) -> dict[str, Any]:
    """Do one task of ``bench.child`` in a process of its own; returns what it found."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.child", mode, json.dumps(task, default=str)],
        env=where.env(),
        cwd=where.root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{mode} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def command() -> list[str]:
    """The installed command, as a user starts it."""
    installed = Path(sys.executable).with_name("depth-watcher")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "watcher"]


@contextmanager
def daemon(where: Place) -> Iterator[subprocess.Popen[bytes]]:
    """A running daemon that has opened its session and has looked through its inbox."""
    log = (where.root / "stderr.txt").open("wb")
    process = subprocess.Popen([*command(), "run", "--config", str(where.config)], env=where.env(), stderr=log)
    try:
        until(lambda: status(where).get("state") == "running", 60, "the daemon did not start")
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        log.close()


def status(where: Place) -> dict[str, Any]:
    """What the daemon wrote last; empty before it has."""
    try:
        found: dict[str, Any] = json.loads((where.state / "status.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def until(true: Callable[[], bool], limit_s: float, complaint: str, step_s: float = 0.01) -> None:
    """Wait for something outside this process. Raises ``TimeoutError`` with the complaint."""
    end = time.perf_counter() + limit_s
    while not true():
        if time.perf_counter() > end:
            raise TimeoutError(complaint)
        time.sleep(step_s)
