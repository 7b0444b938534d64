"""The agent: what the system says of it, whether its file is up to date, how long its log is, what has crashed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from watcher import agent, config, recovery
from watcher.clock import wall_s
from watcher.doctor.finding import Finding, State

_LONG_LOG_BYTES = 10_000_000
_RECENT_S = 7 * 86400.0


def service(settings: config.Settings, config_file: Path | None, survey: agent.Survey) -> Iterator[Finding]:
    """``survey``: what other programs of the system answered, asked before the runtime was loaded."""
    yield _agent(survey.words)
    if agent.on_mac():
        yield _login_item(survey)
    yield _file(agent.drift(settings, config_file), installed=bool(survey.words))
    yield _notifications(settings, config_file)
    yield from _logs(settings)
    yield from _crashes(settings)


def _agent(said: str) -> Finding:
    why = "It starts the daemon at login and keeps it alive."
    if not said:
        return Finding("agent", "agent", "ok", "not installed", why)
    if "switched off" in said:
        remedy = "System Settings > General > Login Items & Extensions: switch it on; then `depth-watcher start`."
        return Finding("agent", "agent", "problem", said, why, remedy)
    state: State = "warning" if "no process" in said or "not loaded" in said or "cannot be asked" in said else "ok"
    return Finding("agent", "agent", state, said, why, "" if state == "ok" else "`depth-watcher start` starts it.")


def _login_item(survey: agent.Survey) -> Finding:
    why = "A person may switch the agent off in System Settings, and that outlives every installation."
    if survey.switched_off is None:
        return Finding("login-item", "login item", "warning", "launchd could not be asked", why, "Ask from Terminal.")
    if survey.switched_off:
        remedy = "System Settings > General > Login Items & Extensions: switch it on; then `depth-watcher start`."
        return Finding("login-item", "login item", "problem", "switched off", why, remedy)
    return Finding("login-item", "login item", "ok", "not switched off", why)


def _file(changed: list[str], *, installed: bool) -> Finding:
    why = "The agent runs as its file says."
    if changed:
        found = f"{', '.join(changed)}: not what `install` would write now"
        remedy = "`depth-watcher install` brings it up to date; name the settings file with --config."
        return Finding("agent-file", "agent's file", "warning", found, why, remedy)
    return Finding("agent-file", "agent's file", "ok", "as `install` writes it" if installed else "not installed", why)


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


def _crashes(settings: config.Settings) -> Iterator[Finding]:
    """Recent reports of a crashed Python, ours or another program's, and the trace that ours leaves; only numbers."""
    recent = 0
    with contextlib.suppress(OSError):
        for file in (Path.home() / "Library/Logs/DiagnosticReports").glob("[Pp]ython*.ips"):
            recent += wall_s() - file.stat().st_mtime < _RECENT_S
    trace = 0
    with contextlib.suppress(OSError):
        trace = (config.state_dir(settings) / recovery.CRASH_FILE).stat().st_size
    state: State = "warning" if recent or trace else "ok"
    said = [f"{recent} crash reports of a Python in the last seven days"] if agent.on_mac() else []
    said.append("the daemon's last process died in native code" if trace else "no trace of a crash of the daemon")
    remedy = "The next start sorts out the picture that it had in hand; depth-watcher logs." if trace else ""
    if recent:
        remedy = f"Console > Crash Reports shows them; that of the daemon names onnxruntime. {remedy}".strip()
    yield Finding("crashes", "crash reports", state, "; ".join(said), "A crash in the runtime leaves one.", remedy)
