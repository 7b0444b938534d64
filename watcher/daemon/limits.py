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


def hands(loader: Loader, engine: Engine, finisher: Finisher, limits: Limits) -> Iterator[Hand]:
    """Every call under way. Waiting (for a full disk, for a place in a queue) is not one."""
    for frame, since_s in list(loader.in_hand.values()):
        yield Hand("decoding", frame, since_s, limits.run_timeout_s)
    for frame, since_s in list(finisher.in_hand.values()):
        yield Hand("encoding", frame, since_s, limits.run_timeout_s)
    held = engine.in_hand
    if held is not None and held[0] is not None:
        yield Hand("the network's run", held[0], held[1], limits.run_timeout_s)
    elif held is not None:
        yield Hand("loading the model", None, held[1], limits.load_timeout_s)
