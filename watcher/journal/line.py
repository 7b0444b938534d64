"""The line: who came when, of the files that intake has no room for in view. On disk, for it may be of any length.

A file keeps its place from its first sighting until it is done, has failed or has left, over restarts too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from watcher.journal.patience import patiently
from watcher.journal.store import Store


@dataclass(frozen=True, slots=True)
class Place:
    """One file in line. Files that were first seen together have the same ``arrival``; a smaller one is earlier."""

    inbox: Path
    key: str
    rel: str
    arrival: int


class Line(Store):
    @patiently
    def line_up(self, places: Sequence[Place]) -> int:
        """Whoever stands in line already keeps the old place; returns how many are new."""
        rows = sorted((*_who(place.inbox, place.key), os.fsencode(place.rel), place.arrival) for place in places)
        with self._writing():
            return self._db.executemany("INSERT OR IGNORE INTO line VALUES (?, ?, ?, ?)", rows).rowcount

    @patiently
    def first_in_line(self, inboxes: Sequence[Path], most: int) -> list[Place]:
        """First come, first served; by name inside one arrival."""
        marks = ", ".join("?" * len(inboxes))
        rows = self._db.execute(
            f"SELECT inbox, key, rel, arrival FROM line WHERE inbox IN ({marks}) ORDER BY arrival, rel LIMIT ?",
            (*map(os.fsencode, inboxes), most),
        )
        texts = ((*map(os.fsdecode, row[:3]), row[3]) for row in rows)
        return [Place(Path(inbox), key, rel, arrival) for inbox, key, rel, arrival in texts]

    @patiently
    def leave_line(self, places: Sequence[Place]) -> None:
        """They are not waited for any more."""
        with self._writing():
            for place in places:
                self._out_of_line(place.inbox, place.key)

    def _out_of_line(self, inbox: Path, key: str) -> None:
        """Inside a transaction."""
        self._db.execute("DELETE FROM line WHERE inbox = ? AND key = ?", _who(inbox, key))

    @patiently
    def anyone_in_line(self) -> bool:
        return self._db.execute("SELECT 1 FROM line LIMIT 1").fetchone() is not None

    @patiently
    def last_arrival(self, inboxes: Sequence[Path]) -> int:
        """The last arrival in line, 0 where nobody stands there; whoever waits at no inbox of these is sent away."""
        marks = ", ".join("?" * len(inboxes))
        with self._writing():
            self._db.execute(f"DELETE FROM line WHERE inbox NOT IN ({marks})", tuple(map(os.fsencode, inboxes)))
        found: int = self._db.execute("SELECT coalesce(max(arrival), 0) FROM line").fetchone()[0]
        return found


def _who(inbox: Path, key: str) -> tuple[bytes, bytes]:
    return os.fsencode(inbox), os.fsencode(key)
