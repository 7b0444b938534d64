"""A launchd for one agent: reads the real plist and treats the real program as launchd would.

Minimal environment, umask, limits and process group; logs opened for appending; KeepAlive after the ending; the
throttle (in ``scale`` of the real time); SIGTERM, and SIGKILL to the whole group after ExitTimeOut. It acts when it is
asked (``look``), so a test needs no thread. What it does not know of launchd: on-demand mode, jetsam, privacy.
"""

from __future__ import annotations

import contextlib
import os
import plistlib
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watcher.agent import plist
from watcher.clock import now_s

SPAWN_FAILED = 78
_MINIMAL_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


class Simulator:
    """``last``: how the last process ended, as launchd counts it: exit code, minus the signal, or 78 of its own."""

    def __init__(self, file: Path, home: Path, *, scale: float = 0.1, extra: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, Any] = plistlib.loads(file.read_bytes())
        assert plist.check(self.values) == []
        self.runs = 0
        self.last: int | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.spawned_s: list[float] = []
        self.killed = False
        self._home, self._extra = home, dict(extra or {})
        self._throttle_s = self.values["ThrottleInterval"] * scale
        self._due_s: float | None = None

    # -- verbs ----------------------------------------------------------------------------------------------------

    def bootstrap(self) -> None:
        if self.values["RunAtLoad"]:
            self._spawn()

    def look(self) -> Simulator:
        """Reap what has ended, and start it again where KeepAlive says so and the throttle lets it."""
        if self.process is not None and self.process.poll() is not None:
            self._ended(self.process.returncode)
        if self._due_s is not None and now_s() >= self._due_s:
            self._spawn()
        return self

    def bootout(self, within_s: float | None = None) -> int | None:
        """SIGTERM, then SIGKILL after ExitTimeOut (or ``within_s``); never started again."""
        self._due_s = None
        if self.process is None:
            return self.last
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(self.values["ExitTimeOut"] if within_s is None else within_s)
        except subprocess.TimeoutExpired:
            self.killed = True
            self._kill_group(self.process.pid)
            code = self.process.wait()
        self._ended(code)
        self._due_s = None
        return self.last

    def kill(self, number: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    @property
    def respawns(self) -> bool:
        """Whether another start is planned."""
        return self._due_s is not None

    # -- processes ------------------------------------------------------------------------------------------------

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self._home),
            "USER": "somebody",
            "LOGNAME": "somebody",
            "SHELL": "/bin/zsh",
            "TMPDIR": "/tmp",
            "PATH": _MINIMAL_PATH,
            "XPC_SERVICE_NAME": self.values["Label"],
            **self.values["EnvironmentVariables"],
            **self._extra,
        }

    def _spawn(self) -> None:
        self.runs += 1
        self.spawned_s.append(now_s())
        self._due_s = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with contextlib.ExitStack() as stack:
            streams: list[int] = []
            try:
                for key in ("StandardOutPath", "StandardErrorPath"):
                    streams.append(os.open(self.values[key], flags, 0o644))
                    stack.callback(os.close, streams[-1])
                self.process = subprocess.Popen(
                    self.values["ProgramArguments"],
                    env=self._environment(),
                    cwd=self.values["WorkingDirectory"],
                    umask=int(self.values["Umask"], 8),
                    process_group=0,
                    stdin=subprocess.DEVNULL,
                    stdout=streams[0],
                    stderr=streams[1],
                )
            except OSError:
                self._ended(SPAWN_FAILED)
                return
        limits = (self.values["SoftResourceLimits"], self.values["HardResourceLimits"])
        soft, hard = (limit["NumberOfFiles"] for limit in limits)
        if sys.platform != "darwin":
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (soft, hard))

    def _ended(self, code: int) -> None:
        if self.process is not None:
            self._kill_group(self.process.pid)
        self.process = None
        self.last = code
        if code != 0:  # SuccessfulExit: false
            self._due_s = self.spawned_s[-1] + self._throttle_s

    @staticmethod
    def _kill_group(group: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
