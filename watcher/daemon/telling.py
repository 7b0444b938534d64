"""Telling: what the threads are doing, as a snapshot, into the status file; not more often than anybody looks."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher import __version__, status
from watcher.clock import now_s, stamp
from watcher.config import Limits
from watcher.daemon.limits import hands
from watcher.effort import Effort, Gauge
from watcher.engine import Engine
from watcher.errors import VolumeTrouble
from watcher.fetching import Fetcher
from watcher.finisher import Finisher
from watcher.frame import Frame, Outcome
from watcher.handover import Handover
from watcher.intake import Intake
from watcher.journal import Journal
from watcher.loader import Loader
from watcher.network import Network
from watcher.turns import Turns

HEARTBEAT_S = 10.0
_PAUSE_S = 0.5
_RATE_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Rooms:
    """The threads of one life."""

    intake: Intake
    loader: Loader
    engine: Engine
    finisher: Finisher
    fetcher: Fetcher
    turns: Turns

    def failure(self) -> BaseException | None:
        """What ended one of them."""
        rooms = (self.engine, self.loader, self.finisher, self.intake)
        return next((room.failure for room in rooms if room.failure is not None), None)

    def stages(self) -> dict[str, Effort]:
        return {"load": self.loader.effort, "run": self.engine.effort, "finish": self.finisher.effort}

    def queues(self) -> dict[str, tuple[int, int]]:
        """How many wait in front of each stage, and how many may."""
        queues: dict[str, Handover[Any]] = {
            "load": self.intake.work,
            "run": self.loader.ready,
            "finish": self.engine.raw,
        }
        return {name: (min(len(queue), queue.capacity), queue.capacity) for name, queue in queues.items()}

    def guilty(self, limits: Limits, *, overgrown: bool) -> tuple[Frame | None, str]:
        """(the frame that an end which nobody asked for is counted for, in words why); (None, ""): nobody's.

        ``overgrown``: memory ran out while a call went on that did not end when it was to.
        """
        if self.engine.failure is not None:
            held = self.engine.under_way[0].frame if self.engine.under_way else None
            return held, f"the network failed on {held.source.rel}: {self.engine.failure}" if held else ""
        broken = self.loader if self.loader.failure is not None else self.finisher
        if broken.failure is not None:
            held = broken.guilty
            return held, f"the program failed on {held.source.rel}: {broken.failure}" if held else ""
        if overgrown:
            calls = list(hands(self.loader, self.engine, self.finisher, limits))
            longest = min(calls, key=lambda hand: hand.since_s, default=None)
            if longest is not None and longest.frame is not None:
                return longest.frame, f"{longest.stage} of {longest.frame.source.rel} took too much memory"
        return None, ""


@dataclass(frozen=True, slots=True)
class Condition:
    """``state`` is one of starting, running, degraded, stopping, stopped."""

    state: str
    reason: str = ""


@dataclass(slots=True)
class Tally:
    """How the frames of this run ended."""

    done: int = 0
    failed: int = 0

    def note(self, outcome: Outcome) -> None:
        self.done += outcome is Outcome.DONE
        self.failed += outcome is Outcome.FAILED


class Teller:
    def __init__(
        self, state_dir: Path, rooms: Rooms, network: Network, journal: Journal, *, inboxes: tuple[str, ...]
    ) -> None:
        self.tell: Callable[[status.Snapshot], None] | None = None
        self.watch = ""  # what is to be said about watching
        self._state_dir = state_dir
        self._rooms = rooms
        self._network = network
        self._journal = journal
        self._inboxes = inboxes
        self._started = stamp()
        self._told_s = 0.0
        self._gauge = Gauge(rooms.stages())

    def show(self, condition: Condition, *, now: bool = False) -> float:
        """Write the status file where that is due; returns seconds until it will be due again."""
        since_s = now_s() - self._told_s
        if not now and since_s < _PAUSE_S:
            return _PAUSE_S - since_s
        self._told_s = now_s()
        try:
            snapshot = self._look(condition)
        except VolumeTrouble:
            return HEARTBEAT_S  # the journal cannot be read now; the threads that need it say so
        with contextlib.suppress(OSError):  # a full disk must not end the daemon
            status.write(self._state_dir, snapshot)
        if self.tell is not None:
            self.tell(snapshot)
        return HEARTBEAT_S

    def say(self, condition: Condition) -> None:
        """One line on the terminal, for a person who pressed Ctrl-T."""
        with contextlib.suppress(VolumeTrouble, OSError, ValueError):
            sys.stderr.write(f"depth-watcher: {line(self._look(condition))}\n")
            sys.stderr.flush()

    def _look(self, condition: Condition) -> status.Snapshot:
        rooms, known = self._rooms, self._journal.counts()
        report = rooms.engine.report
        shares = self._gauge.look(now_s())
        return status.Snapshot(
            running=condition.state != "stopped",
            pid=os.getpid(),
            state=condition.state,
            reason=condition.reason,
            provider=report.provider if report else "",
            nodes=report.nodes if report else {},
            partitions=report.partitions if report else 0,
            fallback=report.note if report else "",
            decision=report.decision if report else "",
            decided_s=report.decided_s if report else 0.0,
            model=self._network.name,
            notice=self._network.notice,
            counts=status.Counts(
                waiting=rooms.intake.waiting,
                in_flight=len(known.in_flight),
                done=known.done,
                failed=known.failed,
                ignored=rooms.intake.ignored,
            ),
            in_flight=known.in_flight,
            rate=self._rate(),
            stages_ms={name: round(stage.took_ms, 2) for name, stage in rooms.stages().items()},
            busy=shares.busy,
            queues=rooms.queues(),
            bottleneck=shares.bottleneck,
            last_errors=tuple(
                status.Failure(row.rel, str((row.reason or {}).get("what", "")), stamp(row.ended_at))
                for row in self._journal.last_failures()
            ),
            watch=self.watch,
            incomplete=rooms.intake.incomplete,
            inboxes=self._inboxes,
            icloud=rooms.fetcher.facts(),
            started=self._started,
            updated=stamp(),
            version=__version__,
        )

    def _rate(self) -> float:
        now = now_s()
        recent = [at_s for at_s in list(self._rooms.finisher.done_at_s) if now - at_s < _RATE_WINDOW_S]
        return round(len(recent) / max(1.0, now - recent[0]), 3) if recent else 0.0


def line(snapshot: status.Snapshot) -> str:
    """The snapshot in one line."""
    counts = snapshot.counts
    because = f" ({snapshot.reason})" if snapshot.reason else ""
    now = f" ({', '.join(snapshot.in_flight[:3])})" if snapshot.in_flight else ""
    rate = f", {snapshot.rate:.2f} a second" if snapshot.rate else ""
    said = (
        f"{snapshot.state}{because}: {counts.waiting} waiting, {counts.in_flight} in work{now}, "
        f"{counts.done} done, {counts.failed} failed{rate}"
    )
    return "".join(char if char.isprintable() else "?" for char in said)
