"""Effort: how busy each kind of thread is, so that a person sees which stage sets the pace; how many maps there were.

Time is an argument.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_QUIET = 0.02  # below this share of its time no stage does anything worth a name


@dataclass(frozen=True, slots=True)
class _Place:
    """Seconds of one thread: of all frames before, of the one in hand, and since when it works on that; or rests."""

    before_s: float = 0.0
    frame_s: float = 0.0
    since_s: float | None = None

    def until(self, now_s: float) -> float:
        """Seconds of work on the frame in hand."""
        return self.frame_s + (max(0.0, now_s - self.since_s) if self.since_s is not None else 0.0)


class Effort:
    """What one kind of thread has done and is doing. Each thread writes only its own place, so nothing is locked."""

    def __init__(self, threads: int) -> None:
        self._places = [_Place()] * threads
        self.took_ms = 0.0

    def began(self, number: int, now_s: float) -> None:
        """Thread ``number`` takes up a frame."""
        self._places[number] = _Place(self._places[number].before_s, 0.0, now_s)

    def rested(self, number: int, now_s: float) -> None:
        """It waits, with the frame in hand, for something that is no work."""
        place = self._places[number]
        self._places[number] = _Place(place.before_s, place.until(now_s))

    def resumed(self, number: int, now_s: float) -> None:
        place = self._places[number]
        self._places[number] = _Place(place.before_s, place.frame_s, now_s)

    def ended(self, number: int, now_s: float) -> None:
        """It is done with the frame, whatever came of it."""
        place = self._places[number]
        took_s = place.until(now_s)
        self._places[number] = _Place(place.before_s + took_s)
        self.took_ms = took_s * 1000

    @property
    def threads(self) -> int:
        return len(self._places)

    def busy_s(self, now_s: float) -> float:
        """Seconds of all its threads together, since they started; what is in hand counts up to now."""
        return sum(place.before_s + place.until(now_s) for place in self._places.copy())


Span = tuple[float, float | None]  # when a run began and when it ended, if it has


class RunEffort(Effort):
    """Of runs that may overlap: the time in which at least one was under way. ``open_runs``: those, oldest first."""

    def __init__(self, open_runs: Callable[[], Iterable[Span]]) -> None:
        super().__init__(1)
        self._open_runs = open_runs
        self._counted = 0.0, 0.0  # seconds, and up to when

    def ran(self, began_s: float, ended_s: float) -> None:
        """A run is over; told in the order in which they began, while it is still among the open ones."""
        self._counted = _joined(self._counted, (began_s, ended_s))
        self.took_ms = (ended_s - began_s) * 1000

    def busy_s(self, now_s: float) -> float:
        open_runs = self._open_runs()  # first: what ends meanwhile is found in both, and counted once
        counted = self._counted
        for began_s, ended_s in open_runs:
            counted = _joined(counted, (began_s, now_s if ended_s is None else ended_s))
        return counted[0]


def _joined(counted: tuple[float, float], span: tuple[float, float]) -> tuple[float, float]:
    """Seconds with those of ``span`` that come after all that was counted."""
    (total_s, until_s), (began_s, ended_s) = counted, span
    return total_s + max(0.0, ended_s - max(began_s, until_s)), max(until_s, ended_s)


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
        busy_s = {name: stage.busy_s(now_s) for name, stage in self._stages.items()}
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
