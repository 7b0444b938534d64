"""Heralding: when a batch has ended, or pictures went to quarantine, leave a notice for the person at the screen.

Only the main thread comes here. Time is an argument; files are left, nothing is started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from watcher import notices
from watcher.daemon.telling import Tally

QUIET_S = 5.0  # a batch has ended when nothing was left to do for so long
_TITLE = "depth-watcher"


class Herald:
    """``failed``: the names of the last pictures in quarantine, newest first. ``spool`` ``None``: says nothing."""

    def __init__(self, spool: Path | None, tally: Tally, failed: Callable[[], Sequence[str]]) -> None:
        self._spool, self._tally, self._failed = spool, tally, failed
        self._told_done = self._told_failed = 0
        self._quiet_since_s: float | None = None
        self._failed_since_s: float | None = None

    def look(self, now_s: float, *, idle: bool) -> float:
        """Leave a notice where one is due; returns seconds until that can next be so.

        What is done is told once nothing is left to do, what failed also before; several at once.
        """
        done, failed = self._tally.done - self._told_done, self._tally.failed - self._told_failed
        self._quiet_since_s = _since(self._quiet_since_s, now_s) if done and idle else None
        self._failed_since_s = _since(self._failed_since_s, now_s) if failed else None
        since = [at_s for at_s in (self._quiet_since_s, self._failed_since_s) if at_s is not None]
        if self._spool is None or not since:
            return float("inf")
        if (left_s := min(since) + QUIET_S - now_s) > 0:
            return left_s
        done = done if idle else 0
        self._told_done += done
        self._told_failed += failed
        self._quiet_since_s = self._failed_since_s = None
        with contextlib.suppress(OSError):  # a full disk has other places to be told in
            notices.leave(self._spool, _TITLE, sentence(done, failed, self._failed()))
        return float("inf")


def _since(before: float | None, now_s: float) -> float:
    return now_s if before is None else before


def sentence(done: int, failed: int, names: Sequence[str]) -> str:
    """What has ended, in one line; ``names`` of pictures in quarantine, newest first."""
    parts = [f"{done} depth {'map is' if done == 1 else 'maps are'} ready"] if done else []
    if failed:
        first = f": {names[0]}" if names else ""
        more = f" and {failed - 1} more" if failed > 1 and names else ""
        parts.append(f"{failed} {'picture' if failed == 1 else 'pictures'} could not be done{first}{more}")
    return "; ".join(parts)
