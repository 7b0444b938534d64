"""Status: one frozen snapshot of what the daemon is doing. Command line, JSON and log only render it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from watcher import durable
from watcher.clock import stamp

STATUS_FILE = "status.json"
LOCK_FILE = "daemon.lock"
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Counts:
    """``seen`` is always the sum of the others.

    ``waiting``, ``in_flight``, ``failed``, ``ignored``: how many are in that state now. ``done``: maps published since
    the state folder began.
    """

    waiting: int = 0
    in_flight: int = 0
    done: int = 0
    failed: int = 0
    ignored: int = 0

    @property
    def seen(self) -> int:
        return self.waiting + self.in_flight + self.done + self.failed + self.ignored


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    what: str
    when: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A picture that waits because its own bytes say that some are missing; after ``until`` it is tried as it is."""

    name: str
    why: str
    until: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``rate``: maps a second over the last minute. ``stages_ms``: what the last frame cost in each stage.

    The stages are load, run and finish. ``busy``: the share of its threads' time, 0..1, that each worked lately.
    ``queues``: (frames that wait in front of it, places). ``bottleneck``: the busiest stage, "" while nothing happens;
    while it is not run, the network waits for the others.

    ``nodes``: of the network's graph, by provider; ``partitions``: pieces that run on CoreML; ``fallback``: why
    something else runs than was asked for; ``decision``: what was measured, and chosen. ``incomplete``: the first
    few of the pictures in view that wait for their end. ``watch``: that watching was started anew, when and why,
    or that the system tells us of no events; "" where there is nothing to say.
    """

    running: bool = False
    pid: int | None = None
    state: str = "stopped"  # starting, running, degraded, stopping, stopped
    reason: str = ""
    provider: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)
    partitions: int = 0
    fallback: str = ""
    decision: str = ""
    decided_s: float = 0.0
    model: str = ""
    notice: str = ""
    counts: Counts = field(default_factory=Counts)
    in_flight: tuple[str, ...] = ()
    rate: float = 0.0
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)
    queues: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    bottleneck: str = ""
    last_errors: tuple[Failure, ...] = ()
    icloud: Mapping[str, int] = field(default_factory=dict)
    incomplete: tuple[Incomplete, ...] = ()
    watch: str = ""
    inboxes: tuple[str, ...] = ()
    started: str = ""
    updated: str = ""
    version: str = ""

    def as_json(self) -> dict[str, Any]:
        """Documented, stable keys."""
        values = asdict(self)
        values["counts"] = {"seen": self.counts.seen, **values["counts"]}
        return values


def write(state_dir: Path, snapshot: Snapshot) -> None:
    """Leave the snapshot for whoever asks. Raises ``OSError``.

    On a full disk the old file is written over in place: that is when people ask, and it needs no new space.
    """
    text = json.dumps(snapshot.as_json(), indent=1).encode()
    path = state_dir / STATUS_FILE
    try:
        durable.write_whole(path, text.ljust(-(-len(text) // _BLOCK) * _BLOCK), mode=0o600, durable=False)
    except OSError:
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if len(text) > size:
                raise
            file.write(text.ljust(size))


def read(state_dir: Path) -> Snapshot:
    """The last snapshot; whether a daemon runs is told by its lock, not by the file."""
    try:
        found = json.loads((state_dir / STATUS_FILE).read_bytes())
        snapshot = _from_json(found)
    except (OSError, ValueError, TypeError, KeyError):
        snapshot = Snapshot()
    note = durable.holder(state_dir / LOCK_FILE)
    if note is None:
        return _stopped(snapshot)
    pid = pid_of(note)
    if snapshot.pid != pid:
        return Snapshot(running=True, pid=pid, state="starting", updated=stamp())
    return snapshot


def _stopped(snapshot: Snapshot) -> Snapshot:
    """Nobody runs: what was in flight waits again, and only a deliberate ending keeps its reason."""
    counts = snapshot.counts
    values = {
        **{name: getattr(snapshot, name) for name in snapshot.__dataclass_fields__},
        "running": False,
        "pid": None,
        "state": "stopped",
        "reason": snapshot.reason if snapshot.state == "stopped" else "",
        "counts": Counts(counts.waiting + counts.in_flight, 0, counts.done, counts.failed, counts.ignored),
        "in_flight": (),
        "rate": 0.0,
        "busy": {},
        "queues": {},
        "bottleneck": "",
    }
    return Snapshot(**values)


def _from_json(found: dict[str, Any]) -> Snapshot:
    counts = dict(found["counts"])
    counts.pop("seen", None)
    known = {name: found[name] for name in Snapshot.__dataclass_fields__ if name in found}
    known["counts"] = Counts(**counts)
    known["in_flight"] = tuple(found["in_flight"])
    known["queues"] = {str(name): (int(fill[0]), int(fill[1])) for name, fill in found.get("queues", {}).items()}
    known["incomplete"] = tuple(Incomplete(**one) for one in found.get("incomplete", ()))
    known["inboxes"] = tuple(found.get("inboxes", ()))
    known["last_errors"] = tuple(Failure(**failure) for failure in found["last_errors"])
    return Snapshot(**known)


def pid_of(note: str) -> int | None:
    """The process number in a lock's note."""
    first = note.split(maxsplit=1)[0] if note.strip() else ""
    return int(first) if first.isdigit() else None
