"""systemd: the same verbs for a user unit on Linux."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from watcher import durable
from watcher.agent import asking
from watcher.agent.asking import Answer, Tools
from watcher.agent.plist import EXIT_TIMEOUT_S, Filling
from watcher.agent_label import UNIT
from watcher.errors import ExitCode, Unavailable, UsageError

_RUNNING_S = 60.0
_SHOWN = "LoadState,ActiveState,SubState,MainPID,NRestarts,ExecMainStatus,Result"
# What no restart mends: launchd gets a 0 for it, systemd can be told.
_PERMANENT = f"{ExitCode.USAGE} {ExitCode.NO_INPUT} {ExitCode.UNAVAILABLE}"

_UNIT_TEXT = """\
[Unit]
Description=Depth maps of what is dropped into a folder
Documentation=man:systemd.service(5)

[Service]
Type=exec
ExecStart={command}
WorkingDirectory={work}
Environment=ORT_DISABLE_TELEMETRY=1 PYTHONUTF8=1 PYTHONUNBUFFERED=1 DEPTH_WATCHER_UNIT={unit}
Restart=on-failure
RestartSec=10
RestartPreventExitStatus={permanent}
TimeoutStopSec={stop_s}
UMask=0077
LimitNOFILE=4096
{calm}
[Install]
WantedBy=default.target
"""


def render(filling: Filling) -> bytes:
    """The unit. Raises ``UsageError`` for a path that a unit cannot hold."""
    words = [str(filling.python), "-m", "watcher", "run", "--config", str(filling.config)]
    text = _UNIT_TEXT.format(
        command=" ".join(quoted_word(word) for word in words),
        work=plain(str(filling.work)),
        permanent=_PERMANENT,
        stop_s=EXIT_TIMEOUT_S,
        unit=UNIT,
        calm="Nice=10\nIOSchedulingClass=idle\n" if filling.background else "",
    )
    return text.encode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    """A path for a unit: % doubled, which systemd would expand. Raises ``UsageError`` for control characters."""
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise UsageError(f"a unit cannot hold the path {text!r}", "Use a path without control characters.")
    return text.replace("%", "%%")


def quoted_word(word: str) -> str:
    """One word of ExecStart: quotes, and % and $ doubled, which systemd would expand."""
    text = plain(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"' if text != word or " " in text or "'" in text else text


def program_words(file: Path) -> list[str]:
    """The words of an installed unit's ExecStart; none where there is no such unit."""
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    line = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "")
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line.partition("=")[2])
    words = [re.sub(r"\\(.)", r"\1", quoted).replace("$$", "$") if quoted else plain for quoted, plain in found]
    return [word.replace("%%", "%") for word in words]


@dataclass(frozen=True, slots=True)
class Unit:
    """What ``systemctl show`` tells."""

    load: str = ""
    active: str = ""
    sub: str = ""
    pid: int | None = None
    restarts: int = 0
    code: int = 0
    result: str = ""


class Systemd:
    """The unit of one user. ``state_dir`` is where its daemon leaves its status."""

    def __init__(self, tools: Tools, file: Path, state_dir: Path) -> None:
        self.file = file
        self._tools = tools
        self._state_dir = state_dir

    def unit(self) -> Unit:
        """Raises ``Unavailable`` where no manager of this user runs."""
        answer = self._ask("show", UNIT, "-p", _SHOWN)
        found = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
        number = {key: int(value) for key, value in found.items() if value.isdigit()}
        return Unit(
            found.get("LoadState", ""),
            found.get("ActiveState", ""),
            found.get("SubState", ""),
            number.get("MainPID") or None,
            number.get("NRestarts", 0),
            number.get("ExecMainStatus", 0),
            found.get("Result", ""),
        )

    def install(self, data: bytes) -> int:
        """Write, enable and start the unit; returns its process number. Harmless to repeat."""
        before = self.unit().pid
        self.file.parent.mkdir(parents=True, exist_ok=True)
        durable.write_whole(self.file, data, mode=0o644)
        self._ask("daemon-reload")
        self._ask("enable", UNIT)
        self._ask("restart", UNIT)
        return self._await_running(before)

    def uninstall(self) -> bool:
        """False where there was nothing."""
        if not self.file.exists():
            return False
        self._ask("disable", "--now", UNIT)
        self.file.unlink(missing_ok=True)
        self._ask("daemon-reload")
        return True

    def start(self) -> int:
        self._need_file()
        self._ask("start", UNIT)
        return self._await_running(None)

    def stop(self) -> bool:
        """False where it did not run."""
        if self.unit().pid is None:
            return False
        self._ask("stop", UNIT)
        return True

    def restart(self) -> int:
        self._need_file()
        before = self.unit().pid
        self._ask("restart", UNIT)
        return self._await_running(before)

    def _need_file(self) -> None:
        if not self.file.exists():
            raise Unavailable("the agent is not installed", "`depth-watcher install` does that.")

    def _ask(self, *words: str) -> Answer:
        return ask(self._tools, *words)

    def _await_running(self, before: int | None) -> int:
        found: list[int] = []

        def look() -> bool:
            unit = self.unit()
            if unit.pid is not None and unit.pid != before and asking.alive(self._state_dir, unit.pid):
                found.append(unit.pid)
                return True
            if unit.active == "failed":
                raise self._gave_up(unit)
            return False

        if not self._tools.until(look, _RUNNING_S):
            raise self._gave_up(self.unit())
        return found[0]

    def _gave_up(self, unit: Unit) -> Unavailable:
        if unit.pid is None and (why := asking.last_word(self._state_dir)):
            return Unavailable(f"the agent ended by itself: {why}", "Mend that, then `depth-watcher start`.")
        what = (
            f"process {unit.pid} runs, but has not said within {_RUNNING_S:.0f} s that it lives"
            if unit.pid is not None
            else f"the agent does not stay: it ended with {unit.code} after {unit.restarts} restarts"
        )
        return Unavailable(what, f"`journalctl --user -u {UNIT} -n 20` shows why.")


def ask(tools: Tools, *words: str) -> Answer:
    """Ask systemctl for this user. Raises ``Unavailable`` for every refusal, in words."""
    answer = tools.ask(["--user", "--no-pager", *words])
    if answer.code == 0:
        return answer
    if "bus" in answer.said.lower() or "not been booted" in answer.said.lower():
        raise Unavailable(
            f"no manager of user services runs here ({answer.said})",
            "Log in so that systemd serves you (`loginctl enable-linger` for a server), or keep "
            "`depth-watcher run` open.",
        )
    raise Unavailable(
        f"systemctl {words[0]} ended with {answer.code}: {answer.said or 'no word'}",
        f"`systemctl --user status {UNIT}` and `journalctl --user -u {UNIT}` say more.",
    )
