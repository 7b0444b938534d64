"""Limits: which native calls are under way, and which has taken too long. Time is an argument."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from watcher.config import Limits
from watcher.engine import Engine
from watcher.finisher import Finisher
from watcher.frame import Frame
from watcher.loader import Loader


@dataclass(frozen=True, slots=True)
class Hand:
    """A call that nothing can interrupt. ``frame`` is ``None`` while the model itself is loaded."""

    stage: str
    frame: Frame | None
    since_s: float
    limit_s: float

    def overdue(self, now_s: float) -> bool:
        return now_s - self.since_s >= self.limit_s

    def left_s(self, now_s: float) -> float:
        return max(0.0, self.since_s + self.limit_s - now_s)

    def __str__(self) -> str:
        what = f"{self.stage} of {self.frame.source.rel}" if self.frame else self.stage
        return f"{what} took longer than {self.limit_s:g} s"


class MemoryGuard:
    """Sees memory grow without end before the system does. ``look`` is given the process's size, time and again."""

    _PATIENCE = 6  # looks in a row: one large picture may need much for a moment

    def __init__(self, limit_mb: int, physical_bytes: int) -> None:
        """``limit_mb`` 0: half of ``physical_bytes``."""
        self._limit_bytes = limit_mb * 1_000_000 or physical_bytes // 2
        self._over = 0

    @property
    def worried(self) -> bool:
        """Whether the last look was over the limit, so that the next should come soon."""
        return self._over > 0

    def look(self, resident_bytes: int) -> str:
        """A sentence when the process should start anew, else "" ."""
        self._over = self._over + 1 if 0 < self._limit_bytes < resident_bytes else 0
        if self._over < self._PATIENCE:
            return ""
        return f"it holds {resident_bytes / 1e6:.0f} MB of memory, the limit is {self._limit_bytes / 1e6:.0f} MB"


class Nap:
    """Tells a sleep of the machine: the wall clock goes on, the clock that only grows does not."""

    _JUMP_S = 5.0

    def __init__(self, now_s: float, wall_s: float) -> None:
        self._offset_s = wall_s - now_s

    def over(self, now_s: float, wall_s: float) -> bool:
        """Whether the two clocks have come apart since the last look."""
        before, self._offset_s = self._offset_s, wall_s - now_s
        return abs(self._offset_s - before) > self._JUMP_S


def hands(loader: Loader, engine: Engine, finisher: Finisher, limits: Limits) -> Iterator[Hand]:
    """Every call under way. Waiting (for a full disk, for a place in a queue) is not one."""
    for frame, since_s in list(loader.in_hand.values()):
        yield Hand("decoding", frame, since_s, limits.run_timeout_s)
    for frame, since_s in list(finisher.in_hand.values()):
        yield Hand("encoding", frame, since_s, limits.run_timeout_s)
    for held in list(engine.under_way):
        if not held.held:
            continue  # it is over, and waits for its turn or for a place
        if held.frame is not None:
            yield Hand("the network's run", held.frame, held.since_s, limits.run_timeout_s)
        else:
            yield Hand("loading the model", None, held.since_s, limits.load_timeout_s)
