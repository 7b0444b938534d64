"""Intake: one thread that finds files, lets them settle, writes the attempt down and hands the frame on.

Touches: the inboxes (reading), its own journal, its mailbox. Start-up scan, hints and rescans enter by one door
(``_look``); the same thread decides everything, so no file can be handed on twice.
"""

from __future__ import annotations

import heapq
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from watcher import imagefile, settle
from watcher.backlog import WINDOW, Backlog, Entry, Handled, fresh
from watcher.clock import now_s, wall_s
from watcher.errors import SourceChanged, explain
from watcher.folder import Folder
from watcher.frame import Frame, Outcome, Source, Wholeness
from watcher.handover import Handover
from watcher.inbox import Sighting, open_source
from watcher.journal import Journal, Row

log = logging.getLogger(__name__)

_HINTS_MOST = 20_000  # beyond, hints are dropped and one rescan stands for all of them
_DISPOSE_AGAIN_S = 10.0
_PRUNE_EVERY = 1000
_POLL_S = 2.0
_POLL_SHARE = 10  # a scan may cost at most a tenth of the time


class _Stop:
    pass


class _Rescan:
    pass


class _Room:
    """A place in the work queue became free."""


Mail = str | tuple[Frame, Outcome] | _Stop | _Rescan | _Room


class Intake:
    def __init__(self, folders: Sequence[Folder], journal: Path, rules: settle.Rules, rescan_s: float) -> None:
        self.troubles: dict[str, str] = {}
        self.idle = threading.Event()
        self.on_idle: Callable[[], None] = lambda: None
        self.polled: frozenset[int] = frozenset()
        self.failure: BaseException | None = None
        self._folders = tuple(folders)
        self._journal_path = journal
        self._rescan_s = rescan_s
        self._mail: queue.SimpleQueue[Mail] = queue.SimpleQueue()
        self.work: Handover[Frame] = Handover(2, on_take=lambda: self._mail.put(_Room()))
        self._backlog = Backlog(rules)
        self._handled = Handled()
        self._junk = Handled()
        self._in_flight: dict[tuple[int, str], Frame] = {}
        self._suspects: set[tuple[int, str]] = set()
        self._beyond = dict.fromkeys(range(len(folders)), 0)  # candidates that the window had no room for
        self._ignored = dict.fromkeys(range(len(folders)), 0)
        self._scan_at_s = dict.fromkeys(range(len(folders)), 0.0)
        self._arrivals = 0
        self._ended = 0
        self._thread = threading.Thread(target=self._run, name="intake", daemon=True)

    # -- from other threads ---------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def hint(self, path: str) -> None:
        """Something happened at ``path``. Never blocks, never fails, decides nothing."""
        if self._mail.qsize() < _HINTS_MOST:
            self._mail.put(path)
        elif self._mail.qsize() == _HINTS_MOST:
            self._mail.put(_Rescan())

    def ended(self, frame: Frame, outcome: Outcome) -> None:
        """A bell, not data: the frame has left the path."""
        self._mail.put((frame, outcome))

    def rescan(self) -> None:
        self._mail.put(_Rescan())

    def stop(self) -> None:
        self._mail.put(_Stop())

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def waiting(self) -> int:
        return len(self._backlog) + sum(self._beyond.values())

    @property
    def ignored(self) -> int:
        return sum(self._ignored.values())

    # -- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        journal = Journal(self._journal_path)
        try:
            self._journal = journal
            self._remember()
            while self._turn():
                pass
        except BaseException as error:
            log.exception("intake ended by an error that nobody expected")
            self.failure = error
        finally:
            journal.close()

    def _turn(self) -> bool:
        now = now_s()
        for index, folder in enumerate(self._folders):
            if now >= self._scan_at_s[index] or (self._beyond[index] and self._backlog.room() > WINDOW // 2):
                self._scan(index, folder)
        for entry in self._backlog.due(now):
            self._look_at(entry.folder, str(entry.source.path))
        self._hand_on()
        self._set_idle()
        try:
            mail = self._mail.get(timeout=self._pause_s())
        except queue.Empty:
            return True
        return self._open_mail(mail)

    def _pause_s(self) -> float:
        due = [*self._scan_at_s.values()]
        look = self._backlog.next_look_s()
        if look is not None:
            due.append(look)
        return max(0.0, min(due) - now_s())

    def _open_mail(self, mail: Mail) -> bool:
        """One letter and all that lie behind it: what comes together is one arrival."""
        self._arrivals += 1
        seen: set[str] = set()
        while True:
            if isinstance(mail, _Stop):
                return False
            if isinstance(mail, _Rescan):
                self._scan_at_s = dict.fromkeys(self._scan_at_s, 0.0)
            elif isinstance(mail, str):
                if mail not in seen:
                    seen.add(mail)
                    self._hinted(mail)
            elif isinstance(mail, tuple):
                self._note_end(*mail)
            try:
                mail = self._mail.get_nowait()
            except queue.Empty:
                return True

    def _set_idle(self) -> None:
        busy = self._in_flight or self._backlog.entries or any(self._beyond.values()) or not self._mail.empty()
        if busy:
            self.idle.clear()
        elif not self.idle.is_set():
            self.idle.set()
            self.on_idle()

    def _remember(self) -> None:
        """What the journal knows: suspects go first, kept sources need no second look."""
        for row in self._journal.in_state("done"):
            for index, folder in enumerate(self._folders):
                if folder.settings.inbox == row.inbox and folder.settings.after == "keep" and row.size >= 0:
                    self._handled.add_content(index, row.key, (row.size, row.mtime_ns))
        for row in self._journal.in_state("held"):
            if row.reason and row.reason.get("code") == "suspect":
                for index, folder in enumerate(self._folders):
                    if folder.settings.inbox == row.inbox:
                        self._suspects.add((index, row.key))
                        self._look_at(index, str(row.inbox / row.rel))
        self._suspects &= set(self._backlog.entries)

    # -- seeing ---------------------------------------------------------------------------------------------------

    def _scan(self, index: int, folder: Folder, below: str = "") -> None:
        """The whole inbox, or one of its folders: the smallest names that there is room for come into view."""
        began = now_s()
        self._arrivals += 1
        place = str(folder.inbox.folder)
        self._found = self._passed = 0
        try:
            folder.inbox.prepare()
            chosen = heapq.nsmallest(
                self._backlog.room(), self._candidates(index, folder, below), key=lambda sighting: sighting.rel
            )
        except OSError as error:
            self._tell(place, "the inbox cannot be read: {}. {}".format(*explain(error)))
            self._scan_at_s[index] = now_s() + min(self._rescan_s, 5.0)
            return
        self._tell(place, None)
        for sighting in chosen:
            self._look(index, folder, sighting)
        cost_s = now_s() - began
        if below:
            self._beyond[index] += self._found - len(chosen)
        else:
            self._beyond[index] = self._found - len(chosen)
            self._ignored[index] = self._passed
            period_s = min(_POLL_S, self._rescan_s) if index in self.polled else self._rescan_s
            self._scan_at_s[index] = now_s() + max(period_s, min(_POLL_SHARE * cost_s, self._rescan_s))

    def _candidates(self, index: int, folder: Folder, below: str) -> Iterator[Sighting]:
        """What may be new to us; files that are in view already are refreshed in passing."""
        for sighting in folder.inbox.scan(below):
            source = sighting.source
            if source is None:
                self._pass_over(folder, sighting)
            elif (index, source.key, source.identity) in self._handled:
                continue
            elif (index, source.key, source.identity) in self._junk:
                self._passed += 1
            elif (index, source.key) in self._backlog.entries:
                self._look(index, folder, sighting)
            elif (index, source.key) not in self._in_flight and not self._surely_done(folder, source):
                self._found += 1
                yield sighting

    def _surely_done(self, folder: Folder, source: Source) -> bool:
        if not self._handled.full or folder.settings.after != "keep":
            return False
        row = self._journal.find(source.inbox, source.key)
        return row is not None and row.state == "done" and row.same_content(source.identity)

    def _pass_over(self, folder: Folder, sighting: Sighting) -> None:
        if sighting.trouble is not None:
            self._tell(str(folder.inbox.folder / sighting.rel), "{}. {}".format(*explain(sighting.trouble)))
        elif sighting.passed not in ("hidden", "gone"):
            self._passed += 1

    def _hinted(self, path: str) -> None:
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
                    self._look_at(index, path)

    def _look_at(self, index: int, path: str) -> None:
        folder = self._folders[index]
        try:
            folder.inbox.anchor.check()
            sighting = folder.inbox.sight(path)
        except OSError as error:
            self._tell(str(folder.inbox.folder), "the inbox cannot be read: {}. {}".format(*explain(error)))
            return
        if sighting is not None and sighting.source is not None:
            self._tell(path, None)
            self._look(index, folder, sighting)
            return
        if sighting is not None and sighting.trouble is not None:
            self._pass_over(folder, sighting)
        for key in folder.inbox.keys(folder.inbox.relative(path) or ""):
            self._leave((index, key))

    def _leave(self, key: tuple[int, str]) -> None:
        """Out of view: gone, done or not ours."""
        self._backlog.drop(key)
        self._suspects.discard(key)

    # -- the one door ---------------------------------------------------------------------------------------------

    def _look(self, index: int, folder: Folder, sighting: Sighting) -> None:
        """One file, as it is now: known, in work, waiting, or new."""
        source = sighting.source
        assert source is not None
        key = (index, source.key)
        if key in self._in_flight or any((*key, source.identity) in known for known in (self._handled, self._junk)):
            return
        entry = self._backlog.entries.get(key)
        if entry is not None and entry.source.identity == source.identity and not entry.unread:
            entry.waiting = settle.sight(entry.waiting, source.identity, entry.waiting.wholeness, now_s())
            self._backlog.sight(entry, now_s())
            return
        row = self._journal.find(source.inbox, source.key)
        if row is not None and row.same_content(source.identity) and not self._still_wanted(folder, row, source):
            self._leave(key)
            return
        if entry is None and not self._backlog.room():
            self._beyond[index] += 1
            return
        self._take_in(index, sighting, entry, row)

    def _take_in(self, index: int, sighting: Sighting, entry: Entry | None, row: Row | None) -> None:
        source = sighting.source
        assert source is not None
        unread = sighting.copying
        try:
            wholeness = self._wholeness(source)
        except FileNotFoundError:
            self._leave((index, source.key))
            return
        except OSError as error:
            self._tell(str(source.path), "{}. {}".format(*explain(error)))
            wholeness, unread = Wholeness.PARTIAL, True
        if wholeness is None:
            self._junk.add(index, source.key, source.identity)
            self._ignored[index] += 1
            self._passed += 1
            self._leave((index, source.key))
            return
        now = now_s()
        if entry is None:
            entry = fresh(index, source, wholeness, self._arrivals, now)
        else:
            entry.waiting = settle.sight(entry.waiting, source.identity, wholeness, now)
            entry.source = source
        entry.unread = unread
        if sighting.copying:
            entry.waiting = replace(entry.waiting, wholeness=Wholeness.PARTIAL)
        if row is not None and row.same_content(source.identity) and row.state == "held" and row.reason:
            self._held(entry, row)
        self._backlog.sight(entry, now)

    def _held(self, entry: Entry, row: Row) -> None:
        """A suspect runs alone; a truncated file has been waiting since the journal says so."""
        if row.reason and row.reason.get("code") == "suspect":
            entry.alone = True  # it had settled before
            entry.patient = entry.waiting.wholeness is not Wholeness.PARTIAL
            entry.waiting = replace(entry.waiting, wholeness=Wholeness.WHOLE)
        else:
            since_s = now_s() - max(0.0, wall_s() - (row.ended_at or 0.0))
            entry.waiting = settle.Waiting(entry.source.identity, Wholeness.PARTIAL, since_s, since_s)

    def _wholeness(self, source: Source) -> Wholeness | None:
        """What the file's own bytes say; ``None`` for a file that neither is nor claims to be a picture."""
        with open_source(source) as file:
            if not imagefile.claims_picture(source.name) and imagefile.sniff(file.read(64)) is None:
                return None
            file.seek(0)
            return imagefile.wholeness(file, source.identity.size)

    def _still_wanted(self, folder: Folder, row: Row, source: Source) -> bool:
        """Whether content that the journal knows is to be done (again)."""
        if row.state == "done":
            if folder.settings.after == "keep":
                self._handled.add(folder.index, source.key, source.identity)
            else:
                self._dispose_again(folder, source)
            return False
        if row.state == "failed":
            if row.filed:
                # Somebody took it out of quarantine by hand and dropped it again: as good as `retry`.
                self._journal.forget(source.inbox, source.key)
                return True
            folder.file(self._journal, row.id, source, row.reason or {})
            return False
        return row.state == "held"

    def _dispose_again(self, folder: Folder, source: Source) -> None:
        """Its map is durable, only the source could not be put away, or a kill came between."""
        try:
            folder.inbox.dispose(source, folder.settings.after, folder.settings.processed)
            self._tell(str(source.path), None)
        except SourceChanged:
            self._scan_at_s[folder.index] = 0.0
        except OSError as error:
            self._tell(str(source.path), "its map is done, but it cannot be moved away: {}. {}".format(*explain(error)))

    # -- handing on -----------------------------------------------------------------------------------------------

    def _hand_on(self) -> None:
        while not self.work.full():
            entry = self._backlog.next_settled()
            if entry is None:
                return
            alone = entry.alone or any(frame.alone for frame in self._in_flight.values())
            if self._in_flight and alone:
                return
            if self._suspects and not entry.alone:
                return
            self._hand_one(entry)

    def _hand_one(self, entry: Entry) -> None:
        folder = self._folders[entry.folder]
        sighting = folder.inbox.sight(str(entry.source.path))
        if sighting is None or sighting.source is None or sighting.source.identity != entry.source.identity:
            self._leave(entry.key)
            if sighting is not None and sighting.source is not None:
                self._look(entry.folder, folder, sighting)
            return
        self._backlog.drop(entry.key)
        frame = folder.attempt(self._journal, entry.source, alone=entry.alone, patient=entry.patient)
        log.debug("%s: attempt %d%s", frame, frame.attempt, ", alone" if frame.alone else "")
        self._in_flight[entry.key] = frame
        self.work.give(frame)

    def _note_end(self, frame: Frame, outcome: Outcome) -> None:
        key = (frame.folder, frame.source.key)
        self._in_flight.pop(key, None)
        self._suspects.discard(key)
        folder = self._folders[frame.folder]
        self._ended += 1
        if self._ended % _PRUNE_EVERY == 0:
            self._journal.prune(self._gone)
        if outcome is Outcome.DONE and folder.settings.after == "keep":
            self._handled.add(frame.folder, frame.source.key, frame.source.identity)
        if outcome is Outcome.GIVEN_BACK:
            entry = fresh(frame.folder, frame.source, Wholeness.WHOLE, self._arrivals, now_s())
            entry.alone = frame.alone
            self._backlog.put_off(entry, now_s())
        else:
            self._backlog.forgive(key)
            self._look_at(frame.folder, str(frame.source.path))

    def _gone(self, inbox: Path, rel: str) -> bool:
        """Whether a source has left its inbox; an inbox that is away says nothing."""
        for folder in self._folders:
            if folder.settings.inbox == inbox:
                try:
                    folder.inbox.anchor.check()
                except OSError:
                    return False
                return not os.path.lexists(inbox / rel)
        return not os.path.lexists(inbox / rel) and inbox.is_dir()

    def _tell(self, place: str, trouble: str | None) -> None:
        if trouble is None:
            if self.troubles.pop(place, None) is not None:
                log.info("%s: all right again", place)
        elif self.troubles.get(place) != trouble:
            log.warning("%s: %s", place, trouble)
            if len(self.troubles) < 100:
                self.troubles[place] = trouble
