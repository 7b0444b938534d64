"""Open shots: frames whose raw maps are kept until their shot has settled. Bookkeeping of intake's thread.

A shot has settled when none of its frames is in view or in work and the last one came ``settle_s`` ago, or a file
called ``.end`` lies in its folder. ``once`` has a ``settle_s`` of 0: the end of the work is the end of every shot.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from watcher.backlog import Entry, Key
from watcher.course import Course
from watcher.errors import explain
from watcher.frame import Frame, Identity, Source
from watcher.journal import Journal, Row
from watcher.shots import Shots, folder_of, shot_of

log = logging.getLogger(__name__)

END_MARK = ".end"
KEPT = "shot"  # the code of a held row whose raw map is kept
_LOOK_S = 1.0

_Shot = tuple[int, str]  # (index of the folder, name)


@dataclass(slots=True)
class _Open:
    last_s: float | None  # when its last frame came; None: in an earlier life
    contents: dict[str, tuple[int, int]] = field(default_factory=dict)  # key of the source → (size, mtime_ns)


class OpenShots:
    def __init__(self, course: Course, settle_s: float) -> None:
        self._course = course
        self._settle_s = settle_s
        self._open: dict[_Shot, _Open] = {}

    @property
    def waiting(self) -> int:
        return sum(len(shot.contents) for shot in self._open.values())

    def take_in(self, index: int, source: Source, now_s: float | None) -> bool:
        """A held frame: True where its raw map is kept, and it waits for its shot."""
        shots, name = self._shots_of(index), shot_of(source.rel)
        if shots is None or name is None or not shots.waits(source):
            return False
        shot = self._open.setdefault((index, name), _Open(now_s))
        shot.last_s = now_s
        shot.contents[source.key] = source.identity.content
        return True

    def remember(self, held: Iterable[Row]) -> None:
        """What an earlier life kept, from the journal's held rows."""
        for row in held:
            if row.reason and row.reason.get("code") == KEPT:
                source = Source(row.inbox, row.rel, row.key, Identity(row.size, row.mtime_ns))
                for folder in self._course.folders:
                    if folder.settings.inbox == row.inbox:
                        self.take_in(folder.index, source, None)

    def waits(self, index: int, source: Source) -> bool:
        """Whether this content needs nothing but the end of its shot."""
        if not self._open:
            return False
        shot = self._open.get((index, shot_of(source.rel) or ""))
        return shot is not None and shot.contents.get(source.key) == source.identity.content

    def leave(self, index: int, key: str) -> None:
        """The source has gone, or holds something else now."""
        for (folder, _), shot in self._open.items():
            if folder == index:
                shot.contents.pop(key, None)

    def next_s(self, now_s: float) -> list[float]:
        """When to look again; nothing while no shot is open."""
        if not self._open:
            return []
        # One that is due already is held back by files in view or in work: their ends wake intake.
        quiet_s = [state.last_s + self._settle_s for state in self._open.values() if state.last_s is not None]
        return [min([now_s + _LOOK_S, *(at_s for at_s in quiet_s if at_s > now_s)])]

    def settle(
        self, now_s: float, journal: Journal, blocked: set[int], at_work: Sequence[Mapping[Key, Entry | Frame]]
    ) -> set[int]:
        """Settle shots whose time has come; returns the folders whose kept frames can go on.

        ``blocked``: folders that are not in view as a whole.
        ``at_work``: the files in view and the frames in work.
        """
        for state in self._open.values():
            state.last_s = now_s if state.last_s is None else state.last_s
        due = [
            shot for shot, state in self._open.items() if shot[0] not in blocked and self._is_due(shot, state, now_s)
        ]
        if not due:
            return set()
        busy = {(each.folder, shot_of(each.source.rel)) for some in at_work for each in some.values()}
        settled = {shot for shot in due if shot not in busy and self._settle(shot, journal)}
        for shot in settled:
            del self._open[shot]
        for index, name in settled:
            self._remove_mark(index, folder_of(name))
        return {index for index, _ in settled}

    def _is_due(self, shot: _Shot, state: _Open, now_s: float) -> bool:
        index, name = shot
        quiet = state.last_s is not None and now_s >= state.last_s + self._settle_s
        if quiet or os.path.lexists(self._mark(index, folder_of(name))):
            return True
        shots = self._shots_of(index)
        try:
            return shots is None or shots.has_settled(self._inbox(index), name)
        except OSError:
            return True  # settling it will say what stands in the way

    def _settle(self, shot: _Shot, journal: Journal) -> bool:
        index, name = shot
        shots, inbox = self._shots_of(index), self._inbox(index)
        if shots is None:
            return True
        place, gone = f"{inbox}: shot {name}", []
        try:
            if not shots.has_settled(inbox, name):
                self._course.folders[index].inbox.anchor.check()
                gone = shots.settle(inbox, name)
        except OSError as error:
            self._course.troubles.tell(place, "its range cannot be found: {}. {}".format(*explain(error)))
            return False
        self._course.troubles.tell(place, None)
        for key in gone:
            journal.forget(inbox, key, "held")
        return True

    def _remove_mark(self, index: int, folder: str) -> None:
        """The mark ends what was there; the next shot of that folder needs one of its own."""
        if not any(other == index and folder_of(name) == folder for other, name in self._open):
            with contextlib.suppress(OSError):
                self._mark(index, folder).unlink(missing_ok=True)

    def _mark(self, index: int, folder: str) -> Path:
        return self._inbox(index) / folder / END_MARK

    def _inbox(self, index: int) -> Path:
        return self._course.folders[index].settings.inbox

    def _shots_of(self, index: int) -> Shots | None:
        wanted = self._course.folders[index].settings.output.range
        return self._course.shots if wanted == "shot" else None
