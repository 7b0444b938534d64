"""Looking: one file of an inbox, as it is now: known, in work, waiting, or new. Only intake's thread comes here.

Whatever finds a file, a scan, a hint or the end of a frame, it ends in ``look``.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from watcher import settle
from watcher.backlog import Backlog, Entry, Handled, Key, fresh
from watcher.clock import now_s
from watcher.course import Course, put_away
from watcher.errors import explain
from watcher.folder import Folder
from watcher.frame import Frame, Source, Wholeness
from watcher.inbox import Sighting
from watcher.intake.beyond import Beyond
from watcher.intake.foreign import Foreign, Judged
from watcher.intake.open_shots import OpenShots
from watcher.intake.pace import Pace, remember_hold, wholeness_of
from watcher.journal import Journal, Row

log = logging.getLogger(__name__)

_AGAIN_S = 5.0


class Looker:
    """What is in view (``backlog``), and in work (``in_flight``)."""

    def __init__(self, course: Course, journal: Journal, pace: Pace) -> None:
        self.backlog = Backlog(pace.rules)
        self.in_flight: dict[Key, Frame] = {}
        self.suspects: set[Key] = set()  # were in hand when the process before us died; they go first, alone
        self.unread: set[int] = set()  # inboxes that could not be read: nobody knows what is in them
        self.arrivals = 0
        self._folders = course.folders
        self._journal = journal
        self._troubles = course.troubles
        self._handled, self._junk, self._shots = Handled(), Foreign(), OpenShots(course, pace.shot_settle_s)
        indices = range(len(course.folders))
        self._beyond = Beyond(course.folders, journal)  # what the window has no room for
        self._ignored = dict.fromkeys(indices, 0)
        self._scan_at_s = dict.fromkeys(indices, 0.0)
        self._passed = 0  # by the scan that goes on
        self._met: set[str] = set()  # places in trouble, as it sees them

    @property
    def ignored(self) -> int:
        return sum(self._ignored.values())

    def look_at(self, index: int, path: str, arrival: int | None = None) -> None:
        folder = self._folders[index]
        sighting = folder.inbox.sight(path)
        if not self.is_there(index):
            return
        if sighting is not None and sighting.source is not None:
            self.look(index, folder, sighting, arrival)
            return
        if sighting is not None and sighting.trouble is not None:
            self._pass_over(folder, sighting)
        else:
            self._troubles.tell(path, None)
        for key in folder.inbox.keys(folder.inbox.relative(path) or ""):
            self.leave((index, key))

    def is_there(self, index: int) -> bool:
        """Asked after a look into an inbox: if it is there now, what was seen there counts, or was not there."""
        try:
            self._folders[index].inbox.anchor.check()
        except OSError as error:
            self.away(index, error)
            return False
        return True

    def away(self, index: int, error: OSError) -> None:
        """An inbox is not there now, or cannot be read, which says nothing about the files in it."""
        self._troubles.tell(
            str(self._folders[index].inbox.folder), "the inbox cannot be read: {}. {}".format(*explain(error))
        )
        self.unread.add(index)
        self._scan_at_s[index] = min(self._scan_at_s[index], now_s() + _AGAIN_S)

    def leave(self, key: tuple[int, str]) -> None:
        """Out of view: gone, done or not ours."""
        self.backlog.drop(key)
        self.suspects.discard(key)
        self._shots.leave(*key)
        self._beyond.left(key)

    def look(self, index: int, folder: Folder, sighting: Sighting, arrival: int | None = None) -> None:
        """One file: known, in work, waiting, or new. With an ``arrival``, it is its turn to come into view."""
        source = sighting.source
        assert source is not None
        key = (index, source.key)
        known = any((*key, source.identity) in kind for kind in (self._handled, self._junk))
        if known or key in self.in_flight or self._shots.waits(index, source):
            return
        entry = self.backlog.entries.get(key)
        if entry is not None and entry.source.identity == source.identity and not entry.unread:
            entry.waiting = settle.sight(entry.waiting, source.identity, entry.waiting.wholeness, now_s())
            self.backlog.sight(entry, now_s())
            return
        row = self._journal.find(source.inbox, source.key)
        if row is not None and row.same_content(source.identity) and not self._still_wanted(folder, row, source):
            self.leave(key)
            return
        if entry is None and arrival is None:
            if self._beyond.total or not self.backlog.room():
                self._queue_up(index, source)
                return
            arrival = self.arrivals
        made = fresh(index, source, Wholeness.UNKNOWN, arrival or 0, now_s()) if entry is None else entry
        self._take_in(index, sighting, made, row)

    def _queue_up(self, index: int, source: Source) -> None:
        if self._junk.judge(index, source) is Judged.FOREIGN:
            self._ignored[index] += 1
        else:
            self._beyond.later(index, source, self.arrivals)

    def _take_in(self, index: int, sighting: Sighting, entry: Entry, row: Row | None) -> None:
        source = sighting.source
        assert source is not None
        unread = sighting.copying
        entry.why = "Finder is still copying it" if sighting.copying else "the end of the file is missing"
        try:
            wholeness = wholeness_of(source)
        except FileNotFoundError:
            self.leave((index, source.key))
            return
        except OSError as error:
            self._troubles.tell(str(source.path), "{}. {}".format(*explain(error)))
            wholeness, unread, entry.why = Wholeness.PARTIAL, True, ""
        else:
            self._troubles.tell(str(source.path), None)
        if wholeness is None:
            self._junk.add(index, source.key, source.identity)
            self._ignored[index] += 1
            self._passed += 1
            self.leave((index, source.key))
            return
        now = now_s()
        if entry.source.identity != source.identity:
            entry.alone = False
            self.suspects.discard(entry.key)
        entry.waiting = settle.sight(entry.waiting, source.identity, wholeness, now)
        entry.source = source
        entry.unread = unread
        if sighting.copying:
            entry.waiting = replace(entry.waiting, wholeness=Wholeness.PARTIAL)
        if row is not None and row.same_content(source.identity) and row.state == "held" and row.reason:
            remember_hold(entry, row)
        self.backlog.sight(entry, now)

    def _still_wanted(self, folder: Folder, row: Row, source: Source) -> bool:
        """Whether content that the journal knows is to be done (again)."""
        if row.state == "done":
            if folder.settings.after == "keep":
                self._handled.add(folder.index, source.key, source.identity)
            elif not put_away(folder, source, self._troubles):
                self._scan_at_s[folder.index] = 0.0
            return False
        if row.state == "failed":
            if row.filed:
                # Somebody took it out of quarantine by hand and dropped it again: as good as `retry`.
                self._journal.forget(source.inbox, source.key, "failed")
                return True
            folder.file(self._journal, row, source, row.reason or {})
            return False
        return row.state == "held"

    def _pass_over(self, folder: Folder, sighting: Sighting) -> None:
        if sighting.trouble is not None:
            place = str(folder.inbox.folder / sighting.rel)
            self._met.add(place)
            self._troubles.tell(place, "{}. {}".format(*explain(sighting.trouble)))
        elif sighting.passed not in ("hidden", "gone"):
            self._passed += 1
