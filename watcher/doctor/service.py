"""The agent: what the system says of it, whether its file is up to date, how long its log is, what has crashed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from watcher import agent, config
from watcher.clock import wall_s
from watcher.doctor.finding import Finding, State

_LONG_LOG_BYTES = 10_000_000
_RECENT_S = 7 * 86400.0


def service(settings: config.Settings, config_file: Path | None, said: str) -> Iterator[Finding]:
    """``said``: what the system's manager of services answered, asked before the runtime was loaded."""
    yield _agent(said)
    if changed := agent.drift(settings, config_file):
        found = f"{', '.join(changed)}: not what `install` would write now"
        remedy = "`depth-watcher install` brings it up to date; name the settings file with --config."
        yield Finding("agent-file", "agent's file", "warning", found, "The agent runs as its file says.", remedy)
    if warning := agent.python_warning():
        yield Finding("agent-python", "agent's Python", "warning", warning, "The agent would not start again.", warning)
    yield _notifications(settings, config_file)
    yield from _logs(settings)
    yield from _crashes()


def _agent(said: str) -> Finding:
    why = "It starts the daemon at login and keeps it alive."
    if not said:
        return Finding("agent", "agent", "ok", "not installed", why)
    if "switched off" in said:
        remedy = "System Settings > General > Login Items & Extensions: switch it on; then `depth-watcher start`."
        return Finding("agent", "agent", "problem", said, why, remedy)
    state: State = "warning" if "no process" in said or "not loaded" in said or "cannot be asked" in said else "ok"
    return Finding("agent", "agent", state, said, why, "" if state == "ok" else "`depth-watcher start` starts it.")


def _notifications(settings: config.Settings, config_file: Path | None) -> Finding:
    why = "The daemon starts no program, so a helper of the system has to show them."
    changed = agent.helper_drift(settings, config_file)
    if not changed:
        found = "shown by a helper" if settings.notify else "off"
        return Finding("notifications", "notifications", "ok", found, why)
    found = f"{', '.join(changed)}: not as notify: {str(settings.notify).lower()} wants it"
    return Finding(
        "notifications", "notifications", "warning", found, why, "`depth-watcher install` brings it in order."
    )


def _logs(settings: config.Settings) -> Iterator[Finding]:
    _, native = agent.logs_of(settings)
    if native is None:
        return
    with contextlib.suppress(OSError):
        size = native.stat().st_size
        state: State = "warning" if size > _LONG_LOG_BYTES else "ok"
        remedy = "Its end says why: depth-watcher logs. It is emptied at the next start." if state != "ok" else ""
        why = "Only native code that is in trouble writes there."
        yield Finding("native-log", "native log", state, f"{size / 1e6:.1f} MB", why, remedy)


def _crashes() -> Iterator[Finding]:
    """Recent reports of a crashed Python: ours, or another program's; only their number is told."""
    if not agent.on_mac():
        return
    recent = 0
    with contextlib.suppress(OSError):
        for file in (Path.home() / "Library/Logs/DiagnosticReports").glob("[Pp]ython*.ips"):
            recent += wall_s() - file.stat().st_mtime < _RECENT_S
    state: State = "warning" if recent else "ok"
    remedy = "Console > Crash Reports shows them; that of the daemon names onnxruntime." if recent else ""
    found = f"{recent} crash reports of a Python in the last seven days"
    yield Finding("crashes", "crash reports", state, found, "A crash inside the runtime leaves one.", remedy)
