"""Intake: one thread that finds files, lets them settle, writes the attempt down and hands the frame on.

Touches: the inboxes (reading), its own journal, its mailbox. It alone decides what is handed on, so no file can be
handed on twice.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable

from watcher.backlog import Entry
from watcher.clock import now_s, stamp, wall_s
from watcher.course import Course
from watcher.errors import VolumeTrouble
from watcher.frame import Frame, Outcome
from watcher.handover import Handover
from watcher.intake.finding import Finder
from watcher.intake.pace import Pace
from watcher.journal import Journal, Patience
from watcher.status import Incomplete

__all__ = ["Intake", "Pace"]

log = logging.getLogger(__name__)

_HINTS_MOST = 20_000  # beyond, hints are dropped and one rescan stands for all of them
_PRUNE_EVERY = 1000
_TIDY_EVERY_S = 30.0


class _Stop:
    pass


class _Rescan:
    pass


class _Room:
    """A place in the work queue became free."""


Mail = str | tuple[Frame, Outcome] | _Stop | _Rescan | _Room


class Intake:
    def __init__(self, course: Course, pace: Pace, *, calls: int = 0) -> None:
        """``calls``: how many pictures that were sent may wait beside the work queue."""
        self._mail: queue.SimpleQueue[Mail] = queue.SimpleQueue()
        self.work: Handover[Frame] = Handover(2, on_take=lambda: self._mail.put(_Room()), aside=calls)
        self.idle = threading.Event()
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self.on_change: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None
        self._course = course
        self._pace = pace
        self._ended = 0
        self._shown: object = None
        self.incomplete: tuple[Incomplete, ...] = ()  # replaced whole, by the thread
        self._held = self._flooded = False
        self._owed: set[str] = set()  # arrivals that nobody has looked at
        self._looked_at: tuple[str, ...] = ()
        self._tidy_at_s = 0.0
        self._finder: Finder | None = None
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)

    # -- from other threads ---------------------------------------------------------------------------------------

    def start(self, *, held: bool = False) -> None:
        """``held``: begin no attempt until ``release``, so that a model that does not load has no picture to blame."""
        self._held = held
        self._thread.start()

    def release(self) -> None:
        self._held = False
        self._mail.put(_Room())

    def hint(self, path: str) -> None:
        """Something happened at ``path``. Never blocks, never fails, decides nothing."""
        if self._mail.qsize() < _HINTS_MOST:
            self._mail.put(path)
        else:
            self._flooded = True  # the mailbox is full, so the thread is awake and will see it

    def arrived(self, path: str) -> None:
        """A hint of a file that was waited for: until it has been looked at, nothing is over."""
        self._owed.add(path)
        self._mail.put(path)

    @property
    def over(self) -> bool:
        """Whether there is nothing to do, and nothing that has yet to be looked at."""
        return not self._owed and self.idle.is_set()

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        """A bell, not data: the frame has left the path."""
        self._mail.put((frame, outcome))

    def rescan(self) -> None:
        self._mail.put(_Rescan())

    def stop(self) -> None:
        self._stopping.set()
        self._mail.put(_Stop())

    def join(self, timeout_s: float) -> bool:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def pause(self, on: bool) -> None:
        """Hand nothing more on until told otherwise; what is in work is finished. Not remembered after a stop."""
        (self._paused.set if on else self._paused.clear)()
        self._mail.put(_Room())
        self.on_change()

    @property
    def paused(self) -> bool:
        return self._paused.is_set()

    @property
    def suspicious(self) -> bool:
        """Whether the guilty one of a crash is still looked for: then frames run alone, with nothing beside them."""
        return self._finder is None or bool(self._finder.suspects)

    @property
    def waiting(self) -> int:
        return self._finder.waiting if self._finder else 0

    @property
    def ignored(self) -> int:
        return self._finder.ignored if self._finder else 0

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            patience = Patience(self._stopping.wait, self._course.troubles.tell)
            with contextlib.closing(Journal(self._course.journal, patience)) as journal:
                finder = Finder(self._course, journal, self._pace)
                finder.remember()
                self._finder = finder
                while self._turn(finder, journal):
                    pass
        except BaseException as error:
            if isinstance(error, VolumeTrouble) and self._stopping.is_set():
                return  # a stop came while the journal's disk was away
            log.exception("intake ended by an error that nobody expected")
            self.failure = error
            self._course.alarm()

    def _turn(self, finder: Finder, journal: Journal) -> bool:
        if self._flooded:
            self._flooded = False
            finder.rescan()
        if now_s() >= self._tidy_at_s:
            self._tidy_at_s = now_s() + _TIDY_EVERY_S
            finder.prune()
        finder.settle_shots(now_s())
        finder.scan_what_is_due(now_s())
        self._hand_on(finder, journal)
        self._set_idle(finder)
        self._tell(finder)
        try:
            mail = self._mail.get(timeout=max(0.0, finder.next_s() - now_s()))
        except queue.Empty:
            return True
        return self._open_mail(finder, mail)

    def _open_mail(self, finder: Finder, mail: Mail) -> bool:
        """One letter and all that lie behind it: what comes together is one arrival.

        Everything is taken out before anything is looked at, so that a path that is named twice is seen as it is last.
        """
        finder.arrivals += 1
        letters = [mail]
        with contextlib.suppress(queue.Empty):
            while True:
                letters.append(self._mail.get_nowait())
        if any(isinstance(letter, _Stop) for letter in letters):
            return False
        if any(isinstance(letter, _Rescan) for letter in letters):
            finder.rescan()
        for letter in letters:
            if isinstance(letter, tuple):
                self._note_end(finder, *letter)
        paths = dict.fromkeys(letter for letter in letters if isinstance(letter, str))
        for path in paths:
            finder.hinted(path)
        self._looked_at = tuple(paths)
        return True

    def _note_end(self, finder: Finder, frame: Frame, outcome: Outcome) -> None:
        finder.ended(frame, outcome)
        self._ended += 1
        if self._ended % _PRUNE_EVERY == 0:
            finder.prune()

    def _tell(self, finder: Finder) -> None:
        """Whoever shows what is waiting and in flight hears of every change."""
        waits = [(entry.source.rel, entry.why, until_s) for entry, until_s in finder.incomplete()]
        shown = (finder.waiting, len(finder.in_flight), finder.ignored, waits)
        if shown != self._shown:
            ahead_s = wall_s() - now_s()
            self.incomplete = tuple(Incomplete(name, why, stamp(until_s + ahead_s)) for name, why, until_s in waits)
            self._shown = shown
            self.on_change()

    def _set_idle(self, finder: Finder) -> None:
        if finder.in_flight or finder.waiting or finder.unread or not self._mail.empty():
            self.idle.clear()
        elif not self.idle.is_set():
            self.idle.set()
            self.on_change()
        self._owed.difference_update(self._looked_at)  # after the look is in what ``idle`` says
        self._looked_at = ()

    # -- handing on -----------------------------------------------------------------------------------------------

    def _hand_on(self, finder: Finder, journal: Journal) -> None:
        while not self.work.full() and not self._paused.is_set() and not self._held:
            entry = finder.backlog.next_settled()
            if entry is None:
                return
            alone = entry.alone or any(frame.alone for frame in finder.in_flight.values())
            if finder.in_flight and alone:
                return
            if finder.suspects and not entry.alone:
                return
            self._hand_one(finder, journal, entry)

    def _hand_one(self, finder: Finder, journal: Journal, entry: Entry) -> None:
        """The verdict was given for one content; it is handed on only while it is still that."""
        folder = self._course.folders[entry.folder]
        sighting = folder.inbox.sight(str(entry.source.path))
        if not finder.is_there(entry.folder):
            finder.backlog.put_off(entry, now_s())
            return
        if sighting is None or sighting.source is None or sighting.source.identity != entry.source.identity:
            finder.leave(entry.key)
            if sighting is not None and sighting.source is not None:
                finder.look(entry.folder, folder, sighting)
            return
        frame = folder.attempt(journal, entry.source, alone=entry.alone, patient=entry.patient)
        log.debug("%s: attempt %d%s", frame, frame.attempt, ", alone" if frame.alone else "")
        finder.backlog.drop(entry.key)
        finder.in_flight[entry.key] = frame
        self._course.take_turn(frame)
        self.work.give(frame)
