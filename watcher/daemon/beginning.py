"""Beginning: what a process does for itself before it works: room for files, a short stderr, an ear for forks."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from watcher.clock import now_s
from watcher.errors import explain
from watcher.inbox import is_dataless

log = logging.getLogger(__name__)

_FILES = 4096
_STDERR_BYTES = 1_000_000
_AGAIN_S = 30.0
_STARTS_A_PROCESS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "pty.spawn"}
)


def raise_file_limit() -> int:
    """Room for 4096 open files, or as many as the hard limit allows (launchd gives 256); returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def shorten(descriptor: int) -> bool:
    """Empty a file that the system keeps open for us and never turns over, once it is too long; True when done."""
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size <= _STDERR_BYTES:
            return False
        os.ftruncate(descriptor, 0)
    except OSError:
        return False
    return True


def listen_for_processes() -> None:
    """From now on, starting a process is an error in the log: beside Apple's frameworks a fork may crash.

    It is not refused: the log line is what a report needs, and whoever starts one may have no other way.
    """
    sys.addaudithook(_listen)


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if event in _STARTS_A_PROCESS:
        log.error("a process was started beside the session (%s): this is a mistake of the program", event)


class Access:
    """Can files in the inboxes be read? A system may let us list a folder and refuse every file in it.

    Asked by the daemon itself: what a terminal may read says nothing about a program that starts at login.
    """

    def __init__(self, inboxes: Sequence[Path], tell: Callable[[str, str | None], None]) -> None:
        self._inboxes, self._tell = inboxes, tell
        self._refused: set[Path] = set()
        self._asked_s: float | None = None

    def look(self) -> None:
        """At the first call, and while something is refused every half minute."""
        if self._asked_s is not None and (not self._refused or now_s() - self._asked_s < _AGAIN_S):
            return
        self._asked_s = now_s()
        for inbox in self._inboxes:
            error = refusal(inbox)
            place = f"{inbox} (access)"
            if error is None:
                self._refused.discard(inbox)
                self._tell(place, None)
            else:
                self._refused.add(inbox)
                self._tell(place, "files in it cannot be read: {}. {}".format(*explain(error)))


def refusal(inbox: Path) -> OSError | None:
    """The error of reading one byte of a file that somebody else put there, if the system does not allow that.

    Only EPERM counts: it is what a system says that guards a folder. Everything else has its own place and words.
    """
    try:
        with os.scandir(inbox) as entries:
            first = next((entry for entry in entries if _is_readable(entry)), None)
    except OSError:
        return None  # a listing that fails is told, and tried again, by intake
    try:
        if first is not None:
            with open(first.path, "rb") as file:
                file.read(1)
    except OSError as error:
        return error if error.errno == errno.EPERM else None
    return None


def _is_readable(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
        return False
    return not is_dataless(entry.stat(follow_symlinks=False))
