"""Finding: the files of the inboxes, through the one door, into the backlog.

Start-up scan, hints and rescans all end in ``look``, which knows what is in work, what is done and what is new.
Only intake's thread comes here.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from watcher.backlog import WINDOW, Entry, fresh
from watcher.clock import now_s
from watcher.course import Course
from watcher.folder import Folder
from watcher.frame import Frame, Outcome, Source, Wholeness
from watcher.inbox import Sighting
from watcher.intake.beyond import place_of
from watcher.intake.foreign import Judged
from watcher.intake.looking import Looker
from watcher.intake.pace import Pace, gone
from watcher.journal import Journal, Place

log = logging.getLogger(__name__)

_POLL_S = 2.0
_POLL_SHARE = 10  # a scan may cost at most a tenth of the time
_SHOWN = 20
_HAD_ITS_TURN = 0  # an arrival before all others


class Finder(Looker):
    def __init__(self, course: Course, journal: Journal, pace: Pace) -> None:
        super().__init__(course, journal, pace)
        self._rescan_s, self._polled, self._remake = pace.rescan_s, pace.polled, pace.remake
        self._read: set[int] = set()  # inboxes that have been read

    def settle_shots(self, now: float) -> None:
        """Kept frames whose shot has settled come into view again."""
        blocked = {
            index for index, at_s in self._scan_at_s.items() if not at_s or self._beyond.counts[index]
        } | self.unread
        for index in self._shots.settle(now, self._journal, blocked, (self.backlog.entries, self.in_flight)):
            self._scan_at_s[index] = 0.0

    def scan_what_is_due(self, now: float) -> None:
        """Look through the inboxes whose time has come, and again at files whose time has come."""
        self._beyond.line_up()
        due = [index for index, at_s in self._scan_at_s.items() if now >= at_s]
        self.arrivals += bool(due)
        for index in due:
            self._scan(index, self._folders[index])
        if due or (self._beyond.total and self.backlog.room() > WINDOW // 2):
            self._fill_up()
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
        return len(self.backlog) + self._beyond.total + self._shots.waiting

    def incomplete(self) -> list[tuple[Entry, float]]:
        """(a file that waits for its end, when it will be tried as it is), a few of them."""
        patience_s = self.backlog.rules.patience_s
        return [(each, each.waiting.unchanged_since_s + patience_s) for each in self.backlog.incomplete(_SHOWN)]

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        """A frame has left the path: what becomes of its source."""
        key = (frame.folder, frame.source.key)
        self.in_flight.pop(key, None)
        self.suspects.discard(key)
        if outcome in (Outcome.DONE, Outcome.FAILED):
            self._beyond.finished(key)
        if outcome is Outcome.DONE and self._folders[frame.folder].settings.after == "keep":
            self._handled.add(frame.folder, frame.source.key, frame.source.identity)
        if outcome is Outcome.GIVEN_BACK:
            entry = fresh(frame.folder, frame.source, Wholeness.WHOLE, _HAD_ITS_TURN, now_s())
            entry.alone = frame.alone
            self.backlog.put_off(entry, now_s())
        else:
            self.backlog.forgive(key)
            if outcome is not Outcome.HELD or not self._shots.take_in(frame.folder, frame.source, now_s()):
                self.look_at(frame.folder, str(frame.source.path), self.arrivals)

    def prune(self) -> None:
        for forget in (self._journal.prune, self._journal.tidy):
            forget(lambda inbox, rel: gone(self._folders, inbox, rel))
        for row in self._journal.unfiled():
            for index, folder in enumerate(self._folders):
                if folder.settings.inbox == row.inbox and (index, row.key) not in self.in_flight:
                    with contextlib.suppress(OSError):  # another time, then
                        folder.seek(self._journal, row)

    def remember(self) -> None:
        """What the journal knows: suspects go first, kept sources need no second look."""
        self.arrivals = self._beyond.remember()
        for index, folder in enumerate(self._folders):
            if folder.settings.after == "keep":
                for key, content in self._journal.kept(folder.settings.inbox):
                    self._handled.add_content(index, key, content)
        self._shots.remember(held := self._journal.in_state("held"))
        for row in held:
            if row.reason and row.reason.get("code") == "suspect":
                for index, folder in enumerate(self._folders):
                    if folder.settings.inbox == row.inbox:
                        self.suspects.add((index, row.key))
                        self.look_at(index, str(row.inbox / row.rel), _HAD_ITS_TURN)
        # One that is gone, or holds new content now, is no suspect; nobody must wait for it.
        self.suspects = {key for key, entry in self.backlog.entries.items() if entry.alone} & self.suspects

    def _scan(self, index: int, folder: Folder, below: str = "") -> None:
        """The whole inbox, or one of its folders. What is found there together is one arrival."""
        began = now_s()
        place = str(folder.inbox.folder)
        self._found = self._passed = 0
        self._met.clear()
        self._junk.begin()
        try:
            self._prepare(index, folder)
            candidates = self._candidates(index, folder, below)
            room = self.backlog.room()
            chosen, new = self._beyond.sort_out(candidates, room, self.arrivals, self._in_view)
        except OSError as error:
            self._scan_at_s[index] = now_s() + self._rescan_s
            self.away(index, error)
            return
        self.unread.discard(index)
        self._read.add(index)
        self._troubles.tell(place, None)
        if not below:
            self._troubles.forget(place, self._met)
        for sighting in chosen:
            self.look(index, folder, sighting, self.arrivals)
        cost_s = now_s() - began
        if below:
            self._beyond.counts[index] += new
            if self._junk.tired:
                self._scan_at_s[index] = 0.0
        else:
            self._beyond.counts[index] = self._found - len(chosen)
            self._ignored[index] = self._passed + self._junk.skipped
            period_s = min(_POLL_S, self._rescan_s) if index in self._polled else self._rescan_s
            pause_s = max(period_s, min(_POLL_SHARE * cost_s, self._rescan_s))
            self._scan_at_s[index] = now_s() + (0.0 if self._junk.tired else pause_s)

    def _prepare(self, index: int, folder: Folder) -> None:
        """One that was thrown away is made again, unless somebody waits for the end of what was in it."""
        if self._remake or index not in self._read:
            folder.inbox.prepare()
        else:
            folder.inbox.anchor.check()

    def _in_view(self) -> list[Place]:
        in_work = [place_of(frame.source, _HAD_ITS_TURN) for frame in self.in_flight.values()]
        return in_work + [place_of(entry.source, entry.arrival) for entry in self.backlog.entries.values()]

    def _fill_up(self) -> None:
        """Those whose turn it is come into view, in all folders alike."""
        while room := self.backlog.room():
            called = self._beyond.next(room, {**self.backlog.entries, **self.in_flight})
            if not called:
                return
            for index, place in called:
                self.look_at(index, str(place.inbox / place.rel), place.arrival)
            self._beyond.called(called, {**self.backlog.entries, **self.in_flight}, self.unread)

    def _candidates(self, index: int, folder: Folder, below: str) -> Iterator[Sighting]:
        """What may be new to us; files that are in view already are refreshed in passing."""
        for sighting in folder.inbox.scan(below, self._junk.known(index, self._handled, self.backlog.entries)):
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

    def hinted(self, path: str) -> None:
        for index, folder in enumerate(self._folders):
            rel = folder.inbox.relative(path)
            if rel == "":
                self._scan_at_s[index] = 0.0
            elif rel is not None:
                if os.path.isdir(path) and not os.path.islink(path):
                    names = rel.split("/")
                    if folder.inbox.recursive and not any(folder.inbox.passes_folder(name) for name in names):
                        self._scan(index, folder, rel)
                else:
                    self.look_at(index, path)
