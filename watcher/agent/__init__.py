"""Agent: the daemon as a service of the user: a LaunchAgent on a Mac, a user unit of systemd on Linux.

Only this room starts other programs, and it never shares a process with the runtime.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from watcher import config, notices
from watcher.agent import launchd, notifier, plist, protected, systemd
from watcher.agent.asking import Tools, program
from watcher.agent.origin import python_for_plist, python_origin, python_warning
from watcher.agent.survey import Survey, of_mac
from watcher.agent_label import LABEL, UNIT, plist_file, unit_file
from watcher.errors import Unavailable, UsageError

__all__ = [
    "Agent",
    "Survey",
    "drift",
    "filling",
    "guarded_folders",
    "helper_drift",
    "installed_config",
    "installed_file",
    "logs_of",
    "on_mac",
    "os_build",
    "python_for_plist",
    "python_origin",
    "python_warning",
    "rendered",
    "show_notices",
    "survey",
    "words",
]

_MAC: bool = sys.platform == "darwin"


def on_mac() -> bool:
    return _MAC


def installed_config() -> Path | None:
    """The settings that the installed agent runs with; ``None`` where that cannot be told."""
    words = _program_words()
    try:
        path = Path(words[words.index("--config") + 1])
    except (ValueError, IndexError):
        return None
    return path if path.is_file() else None


def _program_words() -> list[str]:
    if _MAC:
        found = (plist.read(installed_file()) or {}).get("ProgramArguments", [])
        return [str(word) for word in found] if isinstance(found, list) else []
    return systemd.program_words(installed_file())


def words() -> str:
    """One line about the agent, from the system; empty where none is installed."""
    return Agent(Path()).words()


def survey(*, probing: bool = False) -> Survey:
    """What only other programs of the system can tell. ``probing``: what a report for others needs besides."""
    said = words()
    if not _MAC:
        return Survey(said)
    launchctl, pmset = Tools(program("launchctl")), Tools(program("pmset"))
    keeper = launchd.Launchd(launchctl, os.getuid(), installed_file(), Path())
    return of_mac(said, keeper, launchctl, pmset, probing=probing)


def drift(settings: config.Settings, config_file: Path | None) -> list[str]:
    """In what the installed plist or unit differs from what ``install`` would write now; empty where none is there."""
    file = installed_file()
    if not file.exists():
        return []
    asked_for = config_file or config.user_file()
    if not _MAC:
        texts = [systemd.render(filling(settings, asked_for, background=calm)) for calm in (False, True)]
        return [] if file.read_bytes() in texts else ["the unit"]
    found = plist.read(file)
    if found is None:
        return ["the whole file"]
    calm = found.get("ProcessType") == plist.BACKGROUND
    return plist.drift(found, filling(settings, asked_for, background=calm))


def helper_drift(settings: config.Settings, config_file: Path | None) -> list[str]:
    """Which files of the notification helper are not as `install` would write them now, or should not be there."""
    fill, helper = filling(settings, config_file or config.user_file()), _helper()
    if fill.spool is None:
        return [file.name for file in helper.files if file.exists()]
    return [file.name for file, text in helper.texts(fill).items() if not plist.same(file, text)]


def show_notices(state_dir: Path) -> int:
    """Show what the daemon has left to be told; returns how much was shown. Raises ``Unavailable``."""
    found = notices.take(state_dir / notices.FOLDER)
    return notifier.show(found, program("osascript" if _MAC else "notify-send"), mac=_MAC) if found else 0


def os_build() -> str:
    """``macOS 15.5 (24F74)``; empty elsewhere. Read from a file: asking the system would start a process."""
    found = plist.read(Path("/System/Library/CoreServices/SystemVersion.plist")) or {}
    return f"macOS {found.get('ProductVersion')} ({found.get('ProductBuildVersion')})" if found else ""


def installed_file() -> Path:
    """Where the plist or the unit is, or would be."""
    return plist_file() if _MAC else unit_file()


def filling(settings: config.Settings, config_file: Path, *, background: bool = False) -> plist.Filling:
    """What the agent runs, where it works and where launchd puts what natively written code says."""
    state_dir = config.state_dir(settings)
    spool = state_dir / notices.FOLDER if settings.notify else None
    return plist.Filling(python_for_plist(), config_file.absolute(), state_dir, logs_folder(), background, spool)


def logs_folder() -> Path:
    """``~/Library/Logs/depth-watcher``, which Console shows; never in a guarded folder, whatever ``log.file`` says."""
    return Path.home() / "Library" / "Logs" / "depth-watcher"


def logs_of(settings: config.Settings) -> tuple[Path, Path | None]:
    """(the daemon's log, what launchd has kept of its standard error; ``None`` where the system keeps it)."""
    return config.log_file(settings), logs_folder() / "agent.err.log" if _MAC else None


def guarded_folders(settings: config.Settings, *more: Path) -> list[tuple[Path, str]]:
    """What of the settings' folders, and of ``more``, macOS guards, each with the name of the guarded place."""
    paths = [*more] + [path for f in settings.folders for path in (f.inbox, f.outbox, f.processed, f.failed)]
    return [(path, name) for path in dict.fromkeys(paths) if (name := protected.guarded(path))]


class Agent:
    """The service of this user, whatever manages it. Every verb may raise ``Unavailable``, in words."""

    def __init__(self, state_dir: Path) -> None:
        self._keeper = _keeper(state_dir)
        self._helper = _helper()

    def install(self, fill: plist.Filling) -> int:
        """Create what has to be there, write the file, start the agent; returns its process number.

        Raises ``UsageError`` for root: launchd would take the agent into the wrong session.
        """
        if _MAC and os.geteuid() == 0:
            raise UsageError("the agent belongs to a user, not to root", "Run it again without sudo.")
        data = rendered(fill)
        fill.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _MAC:
            fill.logs.mkdir(mode=0o755, parents=True, exist_ok=True)
        pid = self._keeper.install(data)
        self._install_helper(fill)
        return pid

    def _install_helper(self, fill: plist.Filling) -> None:
        """Last, and told apart: without it maps are made all the same."""
        try:
            if fill.spool is None:
                self._remove_helper()
                return
            fill.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._helper.install(fill)
        except Unavailable as error:
            raise Unavailable(f"the agent runs, its notifications do not: {error.what}", error.remedy) from error

    def _remove_helper(self) -> bool:
        return any(file.exists() for file in self._helper.files) and self._helper.uninstall()

    def uninstall(self) -> bool:
        removed = self._remove_helper()
        return self._keeper.uninstall() or removed

    def start(self) -> int:
        return self._keeper.start()

    def stop(self) -> bool:
        return self._keeper.stop()

    def restart(self) -> int:
        return self._keeper.restart()

    def words(self) -> str:
        """One line about the agent, for people; empty where it is not installed."""
        if not self._keeper.file.exists():
            return ""
        try:
            return _words(self._keeper)
        except Unavailable as error:
            return f"installed, but cannot be asked: {error.what}"


def rendered(fill: plist.Filling) -> bytes:
    """The file that ``install`` writes on this system."""
    return plist.render(fill) if _MAC else systemd.render(fill)


def _keeper(state_dir: Path) -> launchd.Launchd | systemd.Systemd:
    if _MAC:
        return launchd.Launchd(Tools(program("launchctl")), os.getuid(), installed_file(), state_dir)
    return systemd.Systemd(Tools(program("systemctl")), installed_file(), state_dir)


def _helper() -> notifier.LaunchdHelper | notifier.SystemdHelper:
    folder = installed_file().parent
    if _MAC:
        return notifier.LaunchdHelper(Tools(program("launchctl")), os.getuid(), folder)
    return notifier.SystemdHelper(Tools(program("systemctl")), folder)


def _words(keeper: launchd.Launchd | systemd.Systemd) -> str:
    if isinstance(keeper, systemd.Systemd):
        unit = keeper.unit()
        pid = f"process {unit.pid}" if unit.pid else "no process"
        return f"{UNIT}: {unit.active or 'unknown'}, {pid}, {unit.restarts} restarts"
    job = keeper.job()
    if not job.loaded:
        off = " and switched off in Login Items" if keeper.disabled() else ""
        return f"{LABEL}: installed, not loaded{off}"
    pid = f"process {job.pid}" if job.pid else "no process"
    parts = [job.state or "loaded", pid, f"{job.runs or 0} runs"]
    if job.last_exit:
        parts.append(f"last exit code {job.last_exit}")
    if job.spawn_type:
        parts.append(f"spawn type {job.spawn_type}")
    if job.exit_timeout:
        parts.append(f"exit timeout {job.exit_timeout}")
    return f"{LABEL}: {', '.join(parts)}"
