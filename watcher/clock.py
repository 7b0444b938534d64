"""Time, in one place. Everything that decides by time takes the value as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from watcher import darwin


def now_s() -> float:
    """Seconds that only grow; for deadlines. Stops while the machine sleeps, so a sleep is never a time-out."""
    return time.monotonic()


def wall_s() -> float:
    """Seconds since 1970; for records that outlive the process."""
    return time.time()


def readings() -> dict[str, float]:
    """What each clock says, in seconds; their differences tell which of them stop while the machine sleeps."""
    found = {"monotonic_s": time.monotonic(), "since_boot_s": _since_boot_s()}
    for name in ("CLOCK_UPTIME_RAW", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME"):  # each system has some of them
        if hasattr(time, name):
            found[f"{name.removeprefix('CLOCK_').lower()}_s"] = time.clock_gettime(getattr(time, name))
    return {name: round(value, 1) for name, value in found.items()}


def _since_boot_s() -> float:
    """Seconds since the machine started, sleep included."""
    begun_s = darwin.boot_s()
    if begun_s is not None:
        return time.time() - begun_s
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0


def stamp(seconds: float | None = None) -> str:
    """``2026-12-01T09:30:00Z``: a moment for people and files, UTC, to the second."""
    moment = datetime.fromtimestamp(wall_s() if seconds is None else seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def pause(seconds: float) -> None:
    """Let time go by, for a display that refreshes; nothing that decides may wait like this."""
    time.sleep(seconds)
