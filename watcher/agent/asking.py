"""Asking: the one place where this program starts another one. It never holds the runtime when it does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from watcher import clock, status
from watcher.errors import Unavailable

_PATIENCE_S = 40.0
TIMED_OUT = 124


@dataclass(frozen=True, slots=True)
class Answer:
    """``code`` 0 is success; other numbers are the program's own."""

    code: int
    out: str = ""
    err: str = ""

    @property
    def said(self) -> str:
        return " ".join((self.err or self.out).split())[:300]


def program(name: str) -> Callable[[Sequence[str]], Answer]:
    """A way to ask ``name``, found on the PATH. The call raises ``Unavailable`` where it is not there."""

    def ask(words: Sequence[str]) -> Answer:
        found = shutil.which(name)
        if found is None:
            raise Unavailable(f"this system has no {name}", "Keep `depth-watcher run` open in a terminal instead.")
        try:
            done = subprocess.run(
                [found, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                timeout=_PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Answer(TIMED_OUT, "", f"{name} {words[0]} did not answer within {_PATIENCE_S:.0f} s")
        return Answer(done.returncode, done.stdout, done.stderr)

    return ask


@dataclass(frozen=True, slots=True)
class Tools:
    """How to ask the system's manager of services, and how time goes by."""

    ask: Callable[[Sequence[str]], Answer]
    now_s: Callable[[], float] = field(default=clock.now_s)
    pause: Callable[[float], None] = field(default=clock.pause)

    def until(self, look: Callable[[], bool], seconds: float, every_s: float = 0.25) -> bool:
        """Whether ``look`` became true in that time; it is asked at least once."""
        end_s = self.now_s() + seconds
        while not look():
            if self.now_s() >= end_s:
                return False
            self.pause(every_s)
        return True


def alive(state_dir: Path, pid: int) -> bool:
    """Whether the daemon's own status file says that it is this process, and that it has got as far as watching."""
    told = status.read(state_dir)
    return told.running and told.pid == pid and bool(told.started)


def last_word(state_dir: Path) -> str:
    """Why the last daemon did not stay, in its own words; empty where it left none."""
    told = status.read(state_dir)
    return "" if told.running else told.reason
