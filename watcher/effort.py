"""Effort: how busy each kind of thread is, so that a person sees which stage sets the pace; how many maps there were.

Time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

_QUIET = 0.02  # below this share of its time no stage does anything worth a name


class Effort:
    """What one kind of thread has done. Each thread writes only its own place, so nothing is locked."""

    def __init__(self, threads: int) -> None:
        self._busy_s = [0.0] * threads
        self.took_ms = 0.0

    def widen(self, threads: int) -> None:
        """There are so many threads, or runs side by side, from now on; told by the thread that notes."""
        self._busy_s += [0.0] * (threads - len(self._busy_s))

    def note(self, number: int, took_s: float) -> None:
        """Thread ``number`` was busy with one frame for this long."""
        self._busy_s[number] += took_s
        self.took_ms = took_s * 1000

    @property
    def threads(self) -> int:
        return len(self._busy_s)

    @property
    def busy_s(self) -> float:
        """Seconds of all its threads together, since they started."""
        return sum(self._busy_s)


class Pulse:
    """When maps were made, of files and of sent pictures; any thread may note one."""

    SLOT_S = 2.0
    SLOTS = 60

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=20_000)

    def note(self, now_s: float) -> None:
        self._at_s.append(now_s)

    def look(self, now_s: float) -> list[float]:
        """Maps a second in each of the last ``SLOTS`` slots that are over, oldest first."""
        end, counts = int(now_s // self.SLOT_S), [0] * self.SLOTS
        for at_s in self._at_s.copy():
            slot = int(at_s // self.SLOT_S) - end + self.SLOTS
            if 0 <= slot < self.SLOTS:
                counts[slot] += 1
        return [count / self.SLOT_S for count in counts]


@dataclass(frozen=True, slots=True)
class Shares:
    """``busy``: the share of its time, 0..1, that each stage worked. ``bottleneck``: the busiest, or ""."""

    busy: Mapping[str, float] = field(default_factory=dict)
    bottleneck: str = ""


class Gauge:
    """Compares two looks at the stages. A look that comes too soon after the last one repeats what that found."""

    def __init__(self, stages: Mapping[str, Effort], window_s: float = 2.0) -> None:
        self._stages = stages
        self._window_s = window_s
        self._before: tuple[float, dict[str, float]] | None = None
        self._shares = Shares()

    def look(self, now_s: float) -> Shares:
        busy_s = {name: stage.busy_s for name, stage in self._stages.items()}
        if self._before is None:
            self._before = now_s, busy_s
            return self._shares
        since_s, before = self._before
        passed_s = now_s - since_s
        if passed_s < self._window_s:
            return self._shares
        self._before = now_s, busy_s
        busy = {
            name: min(1.0, round((busy_s[name] - before[name]) / (passed_s * stage.threads), 3))
            for name, stage in self._stages.items()
        }
        busiest = max(busy, key=lambda name: busy[name])
        self._shares = Shares(busy, busiest if busy[busiest] > _QUIET else "")
        return self._shares
