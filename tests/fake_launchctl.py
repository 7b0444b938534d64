"""A launchctl that keeps its agents in memory and takes its time as the real one does.

``bootout`` returns at once and the process goes some polls later; ``bootstrap`` is refused while it goes; a loaded
agent may be held back; any verb can be told to fail. Time goes by only when somebody waits, so no test waits for real.
"""

from __future__ import annotations

import plistlib
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from watcher.agent.asking import Answer

UID = 501
DOMAIN = f"gui/{UID}"

_PRINT = """\
{target} = {{
	active count = {count}
	path = {path}
	type = LaunchAgent
	state = {state}

	program = {program}
	arguments = {{
		{program}
		-m
		watcher
	}}

	working directory = /Users/somebody

	stdout path = /Users/somebody/Library/Logs/depth-watcher/agent.out.log
	inherited environment = {{
		SSH_AUTH_SOCK => /private/tmp/com.apple.launchd.x/Listeners
	}}

	environment = {{
		ORT_DISABLE_TELEMETRY => 1
		XPC_SERVICE_NAME => {label}
	}}

	domain = {domain} [100003]
	asid = 100003
	minimum runtime = 10
	exit timeout = 30
	runs = {runs}
{pid}	immediate reason = speculative
	forks = 0
	execs = 1
	last exit code = {last_exit}
{pended}
	event triggers = {{
	}}

	endpoints = {{
		"x" = {{
			port = 0x1
			active = 0
			state = active
			pid = 99999
		}}
	}}

	spawn type = interactive (4)
	jetsam priority = 40
	properties = runatload | inferred program
}}
"""


@dataclass
class Loaded:
    path: str
    program: str
    pid: int | None = None
    runs: int = 0
    last_exit: str = "(never exited)"
    draining: int = 0
    held: int = 0


@dataclass
class FakeLaunchctl:
    """``scripted``: verb → answers given before the real behaviour begins; ``endless``: verb → the answer for ever.

    ``ends_with``: the exit code with which each started process ends at once; ``None``: it lives. ``dumb``: it lives,
    but its status file never says so.
    """

    drains: int = 3
    holds: int = 0
    ends_with: int | None = None
    dumb: bool = False
    throttled: bool = False
    scripted: dict[str, list[int]] = field(default_factory=dict)
    endless: dict[str, int] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    switched_off: bool = False  # by the user in System Settings: `enable` does not help
    jobs: dict[str, Loaded] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    living: set[int] = field(default_factory=set)
    clock_s: float = 0.0
    _next_pid: int = 1000

    # -- time -----------------------------------------------------------------------------------------------------

    def now_s(self) -> float:
        return self.clock_s

    def pause(self, seconds: float) -> None:
        self.clock_s += seconds
        for label, job in list(self.jobs.items()):
            if job.draining:
                job.draining -= 1
                if not job.draining:
                    self._end(job)
                    del self.jobs[label]
            elif job.held:
                job.held -= 1

    # -- verbs ----------------------------------------------------------------------------------------------------

    def __call__(self, words: Sequence[str]) -> Answer:
        verb, rest = words[0], list(words[1:])
        self.calls.append(" ".join([verb, *[word for word in rest if word.startswith("-")]]))
        if self.scripted.get(verb):
            code = self.scripted[verb].pop(0)
            if code:
                return Answer(code, "", f"{verb.capitalize()} failed: {code}: scripted")
        if verb in self.endless:
            return Answer(self.endless[verb], "", f"{verb.capitalize()} failed: {self.endless[verb]}: scripted")
        return {
            "print": self._print,
            "print-disabled": self._print_disabled,
            "bootstrap": self._bootstrap,
            "bootout": self._bootout,
            "enable": self._enable,
            "kickstart": self._kickstart,
        }[verb](rest)

    def _print(self, words: list[str]) -> Answer:
        domain, _, label = words[0].rpartition("/")
        job = self.jobs.get(label)
        if domain != DOMAIN:
            return Answer(112, "", "Could not find domain for")
        if job is None:
            return Answer(113, "", f'Bad request.\nCould not find service "{label}" in domain for user gui: {UID}')
        state = "SIGTERMed" if job.draining else "running" if job.pid else "not running"
        if self.throttled and not job.pid:
            state = "spawn scheduled"
        text = _PRINT.format(
            target=words[0],
            count=int(job.pid is not None),
            path=job.path,
            state=state,
            program=job.program,
            label=label,
            domain=domain,
            runs=job.runs,
            pid=f"\tpid = {job.pid}\n" if job.pid else "",
            last_exit=job.last_exit,
            pended="\tpended nondemand spawn = speculative\n" if job.held else "",
        )
        return Answer(0, text)

    def _print_disabled(self, _: list[str]) -> Answer:
        lines = "".join(f'\t\t"{label}" => disabled\n' for label in sorted(self.disabled))
        return Answer(0, f'\tdisabled services = {{\n\t\t"com.example.other" => enabled\n{lines}\t}}\n')

    def _enable(self, words: list[str]) -> Answer:
        if not self.switched_off:
            self.disabled.discard(words[0].rpartition("/")[2])
        return Answer(0)

    def _bootstrap(self, words: list[str]) -> Answer:
        domain, path = words[0], Path(words[1])
        if domain != DOMAIN:
            return Answer(125, "", "Bootstrap failed: 125: Domain does not support specified action")
        refused = Answer(5, "", "Bootstrap failed: 5: Input/output error")
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or mode & 0o022:
            return refused
        values = plistlib.loads(path.read_bytes())
        label = values["Label"]
        if label in self.jobs or label in self.disabled:
            return refused
        job = self.jobs[label] = Loaded(str(path), values["ProgramArguments"][0], held=self.holds)
        if values.get("RunAtLoad") and not job.held:
            self._begin(job)
        return Answer(0)

    def _bootout(self, words: list[str]) -> Answer:
        job = self.jobs.get(words[0].rpartition("/")[2])
        if job is None:
            return Answer(3, "", "Boot-out failed: 3: No such process")
        if job.draining:
            return Answer(36, "", "Boot-out failed: 36: Operation now in progress")
        job.draining = max(1, self.drains)
        return Answer(0)

    def _kickstart(self, words: list[str]) -> Answer:
        job = self.jobs.get(words[-1].rpartition("/")[2])
        if job is None:
            return Answer(113, "", "Could not find service")
        if "-k" in words:
            self._end(job)
        if job.pid is None and not job.held:
            self._begin(job)
        return Answer(0)

    # -- processes ------------------------------------------------------------------------------------------------

    def _begin(self, job: Loaded) -> None:
        self._next_pid += 1
        job.runs += 1
        if self.ends_with is not None:
            job.last_exit = f"{self.ends_with}: EX_CONFIG" if self.ends_with == 78 else str(self.ends_with)
            return
        job.pid = self._next_pid
        if not self.dumb:
            self.living.add(job.pid)

    def _end(self, job: Loaded) -> None:
        if job.pid is not None:
            self.living.discard(job.pid)
            job.last_exit = "0"
        job.pid = None
