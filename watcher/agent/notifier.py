"""The helper that shows notifications: started by the system when the daemon has left something, gone when it is shown.

The daemon must not start a program, so somebody else has to: launchd for a folder that is not empty
(``QueueDirectories``), systemd for the same (``DirectoryNotEmpty``). Both may be late, or miss one; the next finds all.
"""

from __future__ import annotations

import html
import plistlib
from collections.abc import Callable, Sequence
from pathlib import Path

from watcher import durable
from watcher.agent import plist, systemd
from watcher.agent.asking import Answer, Tools
from watcher.agent.launchd import Launchd
from watcher.agent.schema import Judge, absolute, environment, one_of, places, problems, program, umask, whole
from watcher.errors import Unavailable, UsageError
from watcher.notices import Notice

LABEL = "io.depthwatcher.notify"
TEMPLATE = f"{LABEL}.plist"
PATH_UNIT = "depth-watcher-notify.path"
SERVICE_UNIT = "depth-watcher-notify.service"
_SHOWN_MOST = 3
_NAME = "depth-watcher"

SCHEMA: dict[str, Judge] = {
    "Label": one_of(LABEL),
    "ProgramArguments": program,
    "QueueDirectories": places,
    "ThrottleInterval": whole(10, 600),
    "ProcessType": one_of("Background"),
    "LimitLoadToSessionType": one_of("Aqua"),
    "WorkingDirectory": absolute,
    "StandardOutPath": absolute,
    "StandardErrorPath": absolute,
    "Umask": umask,
    "EnvironmentVariables": environment,
}

_PATH_TEXT = """\
[Unit]
Description=Notices that depth-watcher has left

[Path]
DirectoryNotEmpty={spool}

[Install]
WantedBy=default.target
"""
_SERVICE_TEXT = """\
[Unit]
Description=Show the notices that depth-watcher has left

[Service]
Type=oneshot
ExecStart={command}
WorkingDirectory={work}
Environment=PYTHONUTF8=1
UMask=0077
"""


def render(filling: plist.Filling) -> bytes:
    """The helper's plist. Raises ``UsageError`` where the result would not pass the schema."""
    words = {
        "PYTHON": str(filling.python),
        "CONFIG": str(filling.config),
        "SPOOL": str(filling.spool),
        "WORK": str(filling.work),
        "LOGS": str(filling.logs),
    }
    values = plist.filled(plistlib.loads(plist.template(TEMPLATE)), words)
    if mistakes := problems(values, SCHEMA):
        raise UsageError(f"launchd would not take this helper: {'; '.join(mistakes)}", "Use other paths.")
    return plistlib.dumps(values, sort_keys=False)


def units(filling: plist.Filling) -> dict[str, bytes]:
    """The helper's two units, by their names. Raises ``UsageError`` for a path that a unit cannot hold."""
    words = [str(filling.python), "-m", "watcher", "notify", "--config", str(filling.config)]
    service = _SERVICE_TEXT.format(
        command=" ".join(systemd.quoted_word(word) for word in words), work=systemd.plain(str(filling.work))
    )
    path = _PATH_TEXT.format(spool=systemd.plain(str(filling.spool)))
    texts = {SERVICE_UNIT: service, PATH_UNIT: path}
    return {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}


class LaunchdHelper:
    """The second agent of one user."""

    def __init__(self, tools: Tools, uid: int, agents: Path) -> None:
        self.files = (agents / TEMPLATE,)
        self._job = Launchd(tools, uid, self.files[0], Path(), label=LABEL)

    def texts(self, filling: plist.Filling) -> dict[Path, bytes]:
        return {self.files[0]: render(filling)}

    def install(self, filling: plist.Filling) -> None:
        """Raises ``Unavailable`` in launchd's words, ``OSError``."""
        self._job.make_known(render(filling))

    def uninstall(self) -> bool:
        return self._job.uninstall()


class SystemdHelper:
    """The path unit and the service that it starts."""

    def __init__(self, tools: Tools, folder: Path) -> None:
        self.files = (folder / PATH_UNIT, folder / SERVICE_UNIT)
        self._folder = folder
        self._tools = tools

    def texts(self, filling: plist.Filling) -> dict[Path, bytes]:
        return {self._folder / name: text for name, text in units(filling).items()}

    def install(self, filling: plist.Filling) -> None:
        """Raises ``Unavailable`` in systemd's words, ``OSError``."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for file, text in self.texts(filling).items():
            durable.write_whole(file, text, mode=0o644)
        systemd.ask(self._tools, "daemon-reload")
        systemd.ask(self._tools, "enable", PATH_UNIT)
        systemd.ask(self._tools, "restart", PATH_UNIT)

    def uninstall(self) -> bool:
        if not any(file.exists() for file in self.files):
            return False
        systemd.ask(self._tools, "disable", "--now", PATH_UNIT)
        for file in self.files:
            file.unlink(missing_ok=True)
        systemd.ask(self._tools, "daemon-reload")
        return True


# -- showing ------------------------------------------------------------------------------------------------------

_SCRIPT = (
    *("-e", "on run argv"),
    *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
    *("-e", "end run"),
)


def words_for(notice: Notice, *, mac: bool) -> list[str]:
    """What osascript, or notify-send, is asked. Names of files arrive as arguments, never as part of a script."""
    title = notice.title.lstrip("-") or _NAME  # the first word that is no option ends the options
    if mac:
        return [*_SCRIPT, title, notice.text]
    return [f"--app-name={_NAME}", "--", title, html.escape(notice.text, quote=False)]  # the body is markup there


def show(notices: Sequence[Notice], ask: Callable[[Sequence[str]], Answer], *, mac: bool) -> int:
    """Show the newest few; returns how many. Raises ``Unavailable`` where the system does not show them."""
    for notice in notices[-_SHOWN_MOST:]:
        answer = ask(words_for(notice, mac=mac))
        if answer.code:
            raise Unavailable(
                f"the notification was not shown: {answer.said or answer.code}",
                "System Settings > Notifications > Script Editor allows them on a Mac.",
            )
    return len(notices[-_SHOWN_MOST:])
