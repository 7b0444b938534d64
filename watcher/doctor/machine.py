"""The machine: its system, its processor and what this Python makes of it, where Python is from, and when it sleeps."""

from __future__ import annotations

import os
from collections.abc import Iterator

from watcher import agent, darwin
from watcher.agent import Survey
from watcher.doctor.finding import Finding

_OLDEST_MACOS = 14


def machine(survey: Survey) -> Iterator[Finding]:
    """Starts nothing; ``survey`` was taken before."""
    yield _system()
    yield _architecture()
    yield _python()
    if agent.on_mac():
        yield _sleep(survey)


def _system() -> Finding:
    why = "The wheels of the runtime are made for macOS 14 and newer; on Linux everything but CoreML is the same."
    if not agent.on_mac():
        names = os.uname()
        return Finding("system", "system", "ok", f"{names.sysname} {names.release}", why)
    found = agent.os_build() or "macOS of an unknown version"
    major = found.removeprefix("macOS ").partition(".")[0]
    if major.isdigit() and int(major) < _OLDEST_MACOS:
        return Finding("system", "system", "problem", found, why, "Update macOS to 14 or newer.")
    return Finding("system", "system", "ok", found, why)


def _architecture() -> Finding:
    why = "CoreML is only fast in a native process, and an Intel Python gets an old runtime."
    kind, chip = os.uname().machine, darwin.sysctl_text("machdep.cpu.brand_string")
    found = f"{kind}, {chip}" if chip else kind
    remedy = "Install a Python for Apple Silicon (arm64) and install depth-watcher with it."
    if darwin.translated():
        return Finding("architecture", "architecture", "problem", f"{found}: runs under Rosetta", why, remedy)
    if agent.on_mac() and kind != "arm64":
        return Finding("architecture", "architecture", "problem", f"this Python was made for {found}", why, remedy)
    return Finding("architecture", "architecture", "ok", found, why)


def _python() -> Finding:
    why = "The agent starts this Python; it must outlive the next upgrade, and macOS remembers permissions by it."
    found, warning = agent.python_origin(), agent.python_warning()
    if found.startswith("Apple's"):
        remedy = "Install Python 3.11 or newer, from python.org, Homebrew or uv, and depth-watcher with it."
        return Finding("agent-python", "Python's origin", "problem", f"{found}: changes with Xcode", why, remedy)
    if warning:
        return Finding("agent-python", "Python's origin", "warning", warning, why, "Make the environment anew.")
    return Finding("agent-python", "Python's origin", "ok", found, why)


def _sleep(survey: Survey) -> Finding:
    """A Mac that sleeps makes no maps; that is a choice, so never a problem."""
    why = "A Mac that sleeps makes no maps; they are made when it wakes."
    if not survey.sleep:
        return Finding("sleep", "sleep", "ok", "pmset did not say", why)
    found = ", ".join(f"{key} {value}" for key, value in survey.sleep.items())
    slow = survey.sleep.get("lowpowermode", "0") != "0"
    minutes = survey.sleep.get("sleep", "0")
    if slow:
        remedy = "System Settings > Battery > Low Power Mode: it makes the network several times slower."
        return Finding("sleep", "sleep", "warning", found, why, remedy)
    if minutes != "0":
        remedy = (
            f"It sleeps after {minutes} minutes without a person: System Settings > Energy, or run `caffeinate -i`."
        )
        return Finding("sleep", "sleep", "warning", found, why, remedy)
    return Finding("sleep", "sleep", "ok", found, why)
