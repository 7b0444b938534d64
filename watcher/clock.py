"""Time, in one place. Everything that decides by time takes the value as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_s() -> float:
    """Seconds that only grow; for deadlines. Stops while the machine sleeps, so a sleep is never a time-out."""
    return time.monotonic()


def wall_s() -> float:
    """Seconds since 1970; for records that outlive the process."""
    return time.time()


def stamp(seconds: float | None = None) -> str:
    """``2026-12-01T09:30:00Z``: a moment for people and files, UTC, to the second."""
    moment = datetime.fromtimestamp(wall_s() if seconds is None else seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def pause(seconds: float) -> None:
    """Let time go by, for a display that refreshes; nothing that decides may wait like this."""
    time.sleep(seconds)
