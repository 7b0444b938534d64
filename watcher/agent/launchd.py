"""launchd: load, unload, start and look at the agent, with bounded waits, because launchd does things in its own time.

``bootout`` returns before the process has gone, ``bootstrap`` may be refused while it goes, a loaded agent may be held
back for half a minute after login, and ``print`` shows a process number for a moment even in a crash loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from watcher.agent import asking, plist
from watcher.agent.asking import Tools
from watcher.agent.meanings import BUSY, LOGIN_ITEMS, NOT_LOADED, meaning, refusal
from watcher.agent_label import LABEL
from watcher.errors import Unavailable

_GONE_S = plist.EXIT_TIMEOUT_S + 5.0  # launchd cleans up some seconds after the process has ended
_BOOTSTRAP_S = 15.0
_RUNNING_S = 60.0
_AGAIN_S = 5.0
_UNREADY = (*BUSY, 3, NOT_LOADED)


@dataclass(frozen=True, slots=True)
class Job:
    """What ``launchctl print`` tells; the text is no interface, so every field may be empty."""

    loaded: bool = False
    state: str = ""
    pid: int | None = None
    runs: int | None = None
    last_exit: str = ""
    signal: str = ""
    path: str = ""
    pended: bool = False
    exit_timeout: str = ""
    spawn_type: str = ""

    @property
    def exit_code(self) -> int | None:
        match = re.match(r"\d+", self.last_exit)
        return int(match[0]) if match else None


def parse(text: str) -> Job:
    """Read leniently: only the outermost block counts, because nested ones repeat its words; the first of each wins."""
    found: dict[str, str] = {}
    pended = False
    for depth, key, value in _lines(text):
        pended = pended or key == "pended nondemand spawn"
        if depth == 1:
            found.setdefault(key, value)
    return Job(
        loaded=True,
        state=found.get("state", ""),
        pid=_number(found.get("pid", "")),
        runs=_number(found.get("runs", "")),
        last_exit=found.get("last exit code", ""),
        signal=found.get("last terminating signal", ""),
        path=found.get("path", ""),
        pended=pended,
        exit_timeout=found.get("exit timeout", ""),
        spawn_type=found.get("spawn type", ""),
    )


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    depth = 0
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.endswith("{"):
            depth += 1
        elif stripped == "}":
            depth -= 1
        elif " = " in stripped:
            key, _, value = stripped.partition(" = ")
            yield depth, key.strip(), value.strip()


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) > 0 else None


class Launchd:
    """The agent of one user. ``state_dir`` is where its daemon leaves its status."""

    def __init__(self, tools: Tools, uid: int, file: Path, state_dir: Path, *, label: str = LABEL) -> None:
        self.file = file
        self.label = label
        self._tools = tools
        self._domain = f"gui/{uid}"
        self._target = f"{self._domain}/{label}"
        self._state_dir = state_dir

    # -- looking --------------------------------------------------------------------------------------------------

    def job(self) -> Job:
        """What launchd knows of the agent. Raises ``Unavailable`` where launchd cannot be asked from here."""
        answer = self._tools.ask(["print", self._target])
        if answer.code == 0:
            return parse(answer.out)
        if answer.code in (3, NOT_LOADED) or "could not find service" in answer.said.lower():
            return Job()
        raise refusal("print", answer)

    def disabled(self) -> bool:
        """Whether the user, or a program, has switched the agent off; that outlives every installation."""
        answer = self._tools.ask(["print-disabled", self._domain])
        pattern = rf'"{re.escape(self.label)}"\s*=>\s*(disabled|true)\b'
        return answer.code == 0 and re.search(pattern, answer.out) is not None

    # -- doing ----------------------------------------------------------------------------------------------------

    def install(self, data: bytes) -> int:
        """Write the plist, load it, start the agent; returns its process number. Harmless to repeat.

        Raises ``Unavailable`` with what launchd said, in words; ``OSError`` where the file cannot be written.
        """
        job = self.job()
        if job.loaded and plist.same(self.file, data):
            return self.restart()
        if job.loaded:
            self._unload()
        plist.write(self.file, data)
        return self._load(job.pid)

    def make_known(self, data: bytes) -> None:
        """Write and load a job that launchd starts when there is something for it to do. Harmless to repeat."""
        job = self.job()
        if job.loaded and plist.same(self.file, data):
            return
        if job.loaded:
            self._unload()
        plist.write(self.file, data)
        self._tools.ask(["enable", self._target])  # a refusal shows in what follows
        self._bootstrap()

    def uninstall(self) -> bool:
        """Unload the agent and remove its file, and leave nothing switched off; False where there was nothing."""
        there = self.stop()
        found = self.file.is_symlink() or self.file.exists()
        self.file.unlink(missing_ok=True)
        return there or found

    def start(self) -> int:
        """Start what is installed; returns the process number. Raises ``Unavailable``."""
        self._need_file()
        job = self.job()
        if not job.loaded:
            return self._load()
        self._kickstart()
        return self._await_running(None)

    def stop(self) -> bool:
        """Unload, so that nothing starts it before the next login; False where it was not loaded."""
        if not self.job().loaded:
            return False
        self._unload()
        return True

    def restart(self) -> int:
        """End the process and start it anew; returns the new number. Raises ``Unavailable``."""
        self._need_file()
        job = self.job()
        if not job.loaded:
            return self._load()
        self._kickstart("-k")
        return self._await_running(job.pid)

    def _need_file(self) -> None:
        if not self.file.exists():
            raise Unavailable("the agent is not installed", "`depth-watcher install` does that.")

    def _unload(self) -> None:
        answer = self._tools.ask(["bootout", self._target])
        if answer.code not in (0, 3, 36, NOT_LOADED):
            raise refusal("bootout", answer)
        if not self._tools.until(lambda: not self.job().loaded, _GONE_S):
            raise Unavailable(
                f"the agent is still ending after {_GONE_S:.0f} s", "Wait a little, or log out and in; then try again."
            )

    def _load(self, before: int | None = None) -> int:
        self._tools.ask(["enable", self._target])  # a refusal shows in what follows
        self._bootstrap()
        self._kickstart()
        return self._await_running(before)

    def _bootstrap(self) -> None:
        end_s, pause_s = self._tools.now_s() + _BOOTSTRAP_S, 0.5
        while True:
            answer = self._tools.ask(["bootstrap", self._domain, str(self.file)])
            if answer.code == 0 or (answer.code in BUSY and self.job().path == str(self.file)):
                return
            if answer.code not in BUSY or self._tools.now_s() + pause_s > end_s:
                break
            self._tools.pause(pause_s)
            pause_s = min(pause_s * 2, 4.0)
        if answer.code in (5, 119) and self.disabled():
            raise Unavailable(f"the agent is switched off (bootstrap: {answer.code})", LOGIN_ITEMS)
        raise refusal("bootstrap", answer)

    def _kickstart(self, *how: str) -> None:
        """Without ``-k`` it starts what launchd holds back, and is harmless where the process runs already."""
        answer = self._tools.ask(["kickstart", *how, self._target])
        if answer.code not in (0, 36, 37):
            raise refusal("kickstart", answer)

    # -- success --------------------------------------------------------------------------------------------------

    def _await_running(self, before: int | None) -> int:
        """Until launchd has a process that says itself that it lives; returns its number."""
        first_runs = self.job().runs or 0
        found: list[int] = []
        kicked_s = self._tools.now_s()
        ended = 0

        def look() -> bool:
            nonlocal kicked_s, ended
            job = self.job()
            if job.pid is not None and job.pid != before and asking.alive(self._state_dir, job.pid):
                found.append(job.pid)
                return True
            ended = ended + 1 if _has_ended(job) else 0
            if ended >= 3:
                raise self._gave_up(job, first_runs)
            if job.loaded and job.pid is None and self._tools.now_s() - kicked_s >= _AGAIN_S:
                kicked_s = self._tools.now_s()
                self._tools.ask(["kickstart", self._target])
            return False

        if not self._tools.until(look, _RUNNING_S):
            raise self._gave_up(self.job(), first_runs)
        return found[0]

    def _gave_up(self, job: Job, first_runs: int) -> Unavailable:
        code, see = job.exit_code, "`depth-watcher logs` shows more."
        if not job.loaded:
            return Unavailable("launchd has dropped the agent again", LOGIN_ITEMS)
        if job.pid is not None:
            return Unavailable(f"process {job.pid} runs, but has not said within {_RUNNING_S:.0f} s that it lives", see)
        if code == 0 and (why := asking.last_word(self._state_dir)):
            return Unavailable(f"the agent ended by itself: {why}", f"Mend that, then `depth-watcher start`. {see}")
        if code == 78:
            what, remedy = meaning(78)
            return Unavailable(f"{what} (last exit code 78)", remedy)
        if job.pended or job.state == "spawn scheduled":
            return Unavailable("launchd holds the agent back", "Just after login that lasts half a minute. Try again.")
        ending = job.signal or (f"exit code {job.last_exit}" if job.last_exit else "no word")
        runs = (job.runs or 0) - first_runs
        times = f" and was started {runs} more times meanwhile" if runs > 0 else ""
        return Unavailable(f"the agent does not stay: it ended with {ending}{times}", see)


def _has_ended(job: Job) -> bool:
    """Down for good: nothing restarts a clean ending, and 78 is launchd's own failure, which does not heal."""
    return job.loaded and job.pid is None and not job.pended and bool(job.runs) and job.exit_code in (0, 78)
