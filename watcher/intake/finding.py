"""Finding: the files of the inboxes, through the one door, into the backlog.

Start-up scan, hints and rescans all end in ``_look``, which knows what is in work, what is done and what is new.
Only intake's thread comes here.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from watcher import settle
from watcher.backlog import WINDOW, Backlog, Entry, Handled, Key, fresh
from watcher.clock import now_s
from watcher.course import Course
from watcher.errors import explain
from watcher.folder import Folder
from watcher.frame import Frame, Outcome, Source, Wholeness
from watcher.inbox import Sighting
from watcher.intake.foreign import Foreign, Judged
from watcher.intake.open_shots import OpenShots
from watcher.intake.pace import Pace, dispose_again, gone, remember_hold, wholeness_of
from watcher.journal import Journal, Row

log = logging.getLogger(__name__)

_POLL_S = 2.0
_POLL_SHARE = 10  # a scan may cost at most a tenth of the time
_AGAIN_S = 5.0


class Finder:
    """What is in view (``backlog``), and in work (``in_flight``)."""

    def __init__(self, course: Course, journal: Journal, pace: Pace) -> None:
        self.backlog = Backlog(pace.rules)
        self.in_flight: dict[Key, Frame] = {}
        self.suspects: set[Key] = set()  # were in hand when the process before us died; they go first, alone
        self.unread: set[int] = set()  # inboxes whose last scan failed: nobody knows what is in them
        self.arrivals = 0
        self._folders = course.folders
        self._journal = journal
        self._rescan_s, self._polled = pace.rescan_s, pace.polled
        self._troubles = course.troubles
        self._met: set[str] = set()  # places in trouble, as the last scan saw them
        self._handled, self._junk, self._shots = Handled(), Foreign(), OpenShots(course, pace.shot_settle_s)
        indices = range(len(course.folders))
        self._beyond = dict.fromkeys(indices, 0)  # candidates that the window had no room for
        self._ignored = dict.fromkeys(indices, 0)
        self._scan_at_s = dict.fromkeys(indices, 0.0)

    def settle_shots(self, now: float) -> None:
        """Kept frames whose shot has settled come into view again."""
        blocked = {index for index, at_s in self._scan_at_s.items() if not at_s or self._beyond[index]} | self.unread
        for index in self._shots.settle(now, self._journal, blocked, (self.backlog.entries, self.in_flight)):
            self._scan_at_s[index] = 0.0

    def scan_what_is_due(self, now: float) -> None:
        """Look through the inboxes whose time has come, and again at files whose time has come."""
        for index, folder in enumerate(self._folders):
            if now >= self._scan_at_s[index] or (self._beyond[index] and self.backlog.room() > WINDOW // 2):
                self._scan(index, folder)
        for entry in self.backlog.due(now):
            self.look_at(entry.folder, str(entry.source.path))

    def rescan(self) -> None:
        """All inboxes are due."""
        self._scan_at_s = dict.fromkeys(self._scan_at_s, 0.0)

    def next_s(self) -> float:
        """When something is due."""
        look_s = self.backlog.next_look_s()
        return min([*self._scan_at_s.values(), *self._shots.next_s(now_s()), *([] if look_s is None else [look_s])])

    @property
    def waiting(self) -> int:
        return len(self.backlog) + sum(self._beyond.values()) + self._shots.waiting

    @property
    def ignored(self) -> int:
        return sum(self._ignored.values())

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        """A frame has left the path: what becomes of its source."""
        key = (frame.folder, frame.source.key)
        self.in_flight.pop(key, None)
        self.suspects.discard(key)
        if outcome is Outcome.DONE and self._folders[frame.folder].settings.after == "keep":
            self._handled.add(frame.folder, frame.source.key, frame.source.identity)
        if outcome is Outcome.GIVEN_BACK:
            entry = fresh(frame.folder, frame.source, Wholeness.WHOLE, self.arrivals, now_s())
            entry.alone = frame.alone
            self.backlog.put_off(entry, now_s())
        else:
            self.backlog.forgive(key)
            if outcome is not Outcome.HELD or not self._shots.take_in(frame.folder, frame.source, now_s()):
                self.look_at(frame.folder, str(frame.source.path))

    def prune(self) -> None:
        for forget in (self._journal.prune, self._journal.tidy):
            forget(lambda inbox, rel: gone(self._folders, inbox, rel))

    def remember(self) -> None:
        """What the journal knows: suspects go first, kept sources need no second look."""
        for row in self._journal.in_state("done"):
            for index, folder in enumerate(self._folders):
                if folder.settings.inbox == row.inbox and folder.settings.after == "keep" and row.size >= 0:
                    self._handled.add_content(index, row.key, (row.size, row.mtime_ns))
        self._shots.remember(held := self._journal.in_state("held"))
        for row in held:
            if row.reason and row.reason.get("code") == "suspect":
                for index, folder in enumerate(self._folders):
                    if folder.settings.inbox == row.inbox:
                        self.suspects.add((index, row.key))
                        self.look_at(index, str(row.inbox / row.rel))
        # One that is gone, or holds new content now, is no suspect; nobody must wait for it.
        self.suspects = {key for key, entry in self.backlog.entries.items() if entry.alone} & self.suspects

    def _scan(self, index: int, folder: Folder, below: str = "") -> None:
        """The whole inbox, or one of its folders: the smallest names that there is room for come into view."""
        began = now_s()
        self.arrivals += 1
        place = str(folder.inbox.folder)
        self._found = self._passed = 0
        self._met.clear()
        self._junk.begin()
        try:
            folder.inbox.prepare()
            candidates = self._candidates(index, folder, below)
            chosen = heapq.nsmallest(self.backlog.room(), candidates, key=lambda sighting: sighting.rel)
            deque(candidates, maxlen=0)  # without room nothing was drawn; what is there is counted all the same
        except OSError as error:
            self._troubles.tell(place, "the inbox cannot be read: {}. {}".format(*explain(error)))
            self._scan_at_s[index] = now_s() + min(self._rescan_s, _AGAIN_S)
            self.unread.add(index)
            return
        self.unread.discard(index)
        self._troubles.tell(place, None)
        if not below:
            self._troubles.forget(place, self._met)
        for sighting in chosen:
            self.look(index, folder, sighting)
        cost_s = now_s() - began
        if below:
            self._beyond[index] += self._found - len(chosen)
        else:
            self._beyond[index] = self._found - len(chosen)
            self._ignored[index] = self._passed
            period_s = min(_POLL_S, self._rescan_s) if index in self._polled else self._rescan_s
            pause_s = max(period_s, min(_POLL_SHARE * cost_s, self._rescan_s))
            self._scan_at_s[index] = now_s() + (0.0 if self._junk.tired else pause_s)

    def _candidates(self, index: int, folder: Folder, below: str) -> Iterator[Sighting]:
        """What may be new to us; files that are in view already are refreshed in passing."""
        for sighting in folder.inbox.scan(below):
            source = sighting.source
            if source is None:
                self._pass_over(folder, sighting)
            elif (index, source.key) in self.backlog.entries:
                self.look(index, folder, sighting)
            elif (index, source.key) in self.in_flight or self._surely_done(index, folder, source):
                continue
            else:
                judged = self._junk.judge(index, source)
                self._passed += judged is Judged.FOREIGN
                self._found += judged is not Judged.FOREIGN
                if judged is Judged.CANDIDATE:
                    yield sighting

    def _surely_done(self, index: int, folder: Folder, source: Source) -> bool:
        if (index, source.key, source.identity) in self._handled or self._shots.waits(index, source):
            return True
        if not self._handled.full or folder.settings.after != "keep":
            return False
        row = self._journal.find(source.inbox, source.key)
        return row is not None and row.state == "done" and row.same_content(source.identity)

    def _pass_over(self, folder: Folder, sighting: Sighting) -> None:
        if sighting.trouble is not None:
            place = str(folder.inbox.folder / sighting.rel)
            self._met.add(place)
            self._troubles.tell(place, "{}. {}".format(*explain(sighting.trouble)))
        elif sighting.passed not in ("hidden", "gone"):
            self._passed += 1

    def hinted(self, path: str) -> None:
        for index, folder in enumerate(self._folders):
            rel = folder.inbox.relative(path)
            if rel == "":
                self._scan_at_s[index] = 0.0
            elif rel is not None and not self._beyond[index]:
                if os.path.isdir(path) and not os.path.islink(path):
                    names = rel.split("/")
                    if folder.inbox.recursive and not any(folder.inbox.passes_folder(name) for name in names):
                        self._scan(index, folder, rel)
                else:
                    self.look_at(index, path)

    def look_at(self, index: int, path: str) -> None:
        folder = self._folders[index]
        try:
            folder.inbox.anchor.check()
            sighting = folder.inbox.sight(path)
        except OSError as error:
            self._troubles.tell(str(folder.inbox.folder), "the inbox cannot be read: {}. {}".format(*explain(error)))
            return
        if sighting is not None and sighting.source is not None:
            self.look(index, folder, sighting)
            return
        if sighting is not None and sighting.trouble is not None:
            self._pass_over(folder, sighting)
        else:
            self._troubles.tell(path, None)
        for key in folder.inbox.keys(folder.inbox.relative(path) or ""):
            self.leave((index, key))

    def leave(self, key: tuple[int, str]) -> None:
        """Out of view: gone, done or not ours."""
        self.backlog.drop(key)
        self.suspects.discard(key)
        self._shots.leave(*key)

    def look(self, index: int, folder: Folder, sighting: Sighting) -> None:
        """One file, as it is now: known, in work, waiting, or new."""
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
        if entry is None and not self.backlog.room():
            self._beyond[index] += 1
            return
        self._take_in(index, sighting, entry, row)

    def _take_in(self, index: int, sighting: Sighting, entry: Entry | None, row: Row | None) -> None:
        source = sighting.source
        assert source is not None
        unread = sighting.copying
        try:
            wholeness = wholeness_of(source)
        except FileNotFoundError:
            self.leave((index, source.key))
            return
        except OSError as error:
            self._troubles.tell(str(source.path), "{}. {}".format(*explain(error)))
            wholeness, unread = Wholeness.PARTIAL, True
        else:
            self._troubles.tell(str(source.path), None)
        if wholeness is None:
            self._junk.add(index, source.key, source.identity)
            self._ignored[index] += 1
            self._passed += 1
            self.leave((index, source.key))
            return
        now = now_s()
        if entry is not None and entry.source.identity != source.identity:
            entry.alone = False
            self.suspects.discard(entry.key)
        if entry is None:
            entry = fresh(index, source, wholeness, self.arrivals, now)
        else:
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
            elif not dispose_again(folder, source, self._troubles):
                self._scan_at_s[folder.index] = 0.0
            return False
        if row.state == "failed":
            if row.filed:
                # Somebody took it out of quarantine by hand and dropped it again: as good as `retry`.
                self._journal.forget(source.inbox, source.key)
                return True
            folder.file(self._journal, row.id, source, row.reason or {})
            return False
        return row.state == "held"
