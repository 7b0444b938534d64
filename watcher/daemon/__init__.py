"""Daemon: one process, one lock, and the order in which everything starts and stops.

Start:  locks → journal → recovery → leftovers → engine, loader, finisher, intake → watch → service
Stop:   watch → service → intake → loader → engine → finisher → what is left is given back → locks

Signal handlers only set a flag; the main thread, which waits here, does the rest.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from watcher import __version__, config, cores, durable, memory, notices, recovery, status, volume
from watcher.clock import now_s, stamp, wall_s
from watcher.course import Course, Troubles
from watcher.daemon.beginning import Access
from watcher.daemon.ending import stop_threads
from watcher.daemon.heralding import Herald
from watcher.daemon.limits import Hand, MemoryGuard, Nap, hands
from watcher.daemon.telling import HEARTBEAT_S, Condition, Rooms, Tally, Teller
from watcher.daemon.waking import Bell
from watcher.engine import Engine
from watcher.errors import ExitCode, WatcherError
from watcher.fetching import Fetcher
from watcher.finisher import Finisher
from watcher.folder import Folder
from watcher.frame import Frame, Outcome
from watcher.instance import alone, crash_trace
from watcher.intake import Intake, Pace
from watcher.journal import JOURNAL_FILE, Journal
from watcher.loader import Loader
from watcher.network import Network
from watcher.watch import Root, Watch

if TYPE_CHECKING:
    from watcher.web.service import Service

log = logging.getLogger(__name__)

STOP_BUDGET_S = 4.0  # launchd's ExitTimeOut and a user's patience are both longer
_ONCE_STUCK_S = 10.0
_MEMORY_PAUSE_S = 0.5


class Daemon:
    """``once``: no watching; it ends when nothing is left to do.

    ``tell`` is shown every new snapshot, ``heard`` every frame that leaves the path (from the thread it left on).
    Raises ``ModelError`` where the model of the settings is missing or damaged.
    """

    def __init__(
        self,
        settings: config.Settings,
        *,
        once: bool = False,
        tell: Callable[[status.Snapshot], None] | None = None,
        heard: Callable[[Frame, Outcome], None] | None = None,
    ) -> None:
        self.settings = settings
        self.state_dir = config.state_dir(settings)
        self.tally = Tally()
        self._once = once
        self._tell = tell
        self._heard = heard
        self._bell = Bell()
        self._troubles = Troubles(self._bell.ring)
        self._quiet_since_s = self._memory_seen_s = now_s()
        self._access = Access([folder.inbox for folder in settings.folders], self._troubles.tell)
        self._guard = MemoryGuard(settings.limits.max_memory_mb, memory.physical_bytes())
        self._overgrown = self._lost = ""  # why the process ends, to be started anew
        self._nap = Nap(now_s(), wall_s())
        self._service: Service | None = None
        self.network = Network(settings)
        name, say = self.network.name, self._troubles.tell
        self.folders = tuple(Folder(i, folder, name, say) for i, folder in enumerate(settings.folders))

    # -- the life -------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Live until a signal, a failure, or (``once``) the end of the work; returns the exit code.

        Raises ``AnotherInstance``; the failure that ended the work; ``OSError`` where the state folder is unusable.
        """
        durable.make_folder(self.state_dir, 0o700)
        note = f"{os.getpid()} {'once' if self._once else 'run'} since {stamp()}"
        inboxes = [folder.settings.inbox for folder in self.folders]
        with alone(self.state_dir, inboxes, note), crash_trace(self.state_dir), self._bell.hung():
            return self._live()

    def _live(self) -> int:
        journal = Journal(self.state_dir / JOURNAL_FILE)
        try:
            journal.create()
            recovery.recover(journal, self.folders, self.state_dir, self.settings.limits.max_attempts)
            recovery.finish_deletions(journal, self.folders)
            removed = recovery.clean(self.folders, self.state_dir)
            if removed:
                log.info("%d half-written files of an earlier run were removed", removed)
            self._rooms = self._build()
            inboxes = tuple(str(folder.settings.inbox) for folder in self.folders)
            self._teller = Teller(self.state_dir, self._rooms, self.network, journal, inboxes=inboxes)
            self._teller.tell = self._tell
            spool = self.state_dir / notices.FOLDER if self.settings.notify and not self._once else None
            self._herald = Herald(spool, self.tally, lambda: [row.rel for row in journal.last_failures(1)])
            self._start()
            self._open_service()
            self._wait()
            return self._stop(journal)
        finally:
            journal.close()

    def _build(self) -> Rooms:
        limits = self.settings.limits
        polled = frozenset(folder.index for folder in self.folders if self._is_polled(folder))
        ring, shots = self._bell.ring, self.network.shots()
        shots.anchors = {folder.settings.inbox: folder.inbox.anchor.check for folder in self.folders}
        course = Course(self.folders, self.state_dir / JOURNAL_FILE, self._ended, self._troubles, ring, shots)
        loaders, finishers = cores.pools(cores.usable(), accelerated=self.network.accelerated)
        pace = Pace.of(self.settings.watch, polled, once=self._once)
        rooms = Rooms(
            Intake(course, pace, calls=self.settings.api.backlog),
            Loader(course, limits, threads=loaders),
            Engine(self.network.open, self.network.plan, self.network.condemn),
            Finisher(course, lambda: self.network.about(rooms.engine.report), threads=finishers),
            Fetcher(
                self._troubles.tell, lambda path: rooms.intake.arrived(path), on=self.settings.watch.fetch_dataless
            ),
            course.turns,
        )
        for folder in self.folders:
            folder.inbox.on_dataless = rooms.fetcher.want
        roots = [Root(f.settings.inbox, f.settings.recursive) for f in self.folders if f.index not in polled]
        rooms.intake.on_change = self._bell.ring
        self._watch = Watch([] if self._once else roots, rooms.intake.hint)
        return rooms

    def _is_polled(self, folder: Folder) -> bool:
        how = self.settings.watch.observer
        return how == "polling" or (how == "auto" and volume.is_network(folder.settings.inbox))

    def _start(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):  # told, and tried again, by intake and finisher
                folder.inbox.prepare()
                folder.outbox.prepare()
        rooms = self._rooms
        rooms.engine.start(rooms.loader.ready, self._bell.ring)
        rooms.loader.start(rooms.intake.work, rooms.engine.plan)
        rooms.finisher.start(rooms.engine.raw)
        rooms.intake.start(held=True)
        rooms.fetcher.start()
        self._watch.start()
        self._teller.show(self._condition(), now=True)
        log.info("depth-watcher %s started, process %d", __version__, os.getpid())

    def _open_service(self) -> None:
        """Where the settings ask for it; nothing of it is loaded otherwise."""
        if self.settings.api.enabled and not self._once:
            from watcher.web.service import open_service

            licence, pulse = self.network.licence, self._rooms.finisher.pulse
            about = lambda: {"licence": licence, "pulse": pulse.look(now_s())}  # noqa: E731
            self._service = open_service(self.settings, self._rooms.intake, about, self._troubles.tell)

    # -- waiting --------------------------------------------------------------------------------------------------

    def _ended(self, frame: Frame, outcome: Outcome) -> None:
        self.tally.note(outcome)
        self._rooms.turns.leave(frame)
        if self._heard is not None:
            self._heard(frame, outcome)
        self._rooms.intake.ended(frame, outcome)
        self._bell.ring()

    def _wait(self) -> None:
        announced = False
        while not self._over():
            report = self._rooms.engine.report
            if not announced and report is not None:
                announced = True
                self.network.announce(report)
                self._rooms.intake.release()
            self._check_watch()
            self._check_memory()
            self._check_journal()
            self._check_sleep()
            self._rooms.fetcher.look()
            if not self._once:
                self._access.look()
            if self._bell.asked:
                self._bell.asked = False
                self._teller.say(self._condition())
            if idle := self._rooms.intake.idle.is_set():
                self._rooms.finisher.rest()
                memory.give_back()
            herald_s = self._herald.look(now_s(), idle=idle)
            pause_s = min(self._teller.show(self._condition()), self._check_limits(), herald_s)
            if self._bell.wait(pause_s):
                self._quiet_since_s = now_s()

    def _over(self) -> bool:
        if self._bell.stopped or self._overgrown or self._lost or self._rooms.failure() is not None:
            return True
        if not self._once or self._rooms.fetcher.busy:
            return False
        quiet = now_s() - self._quiet_since_s > _ONCE_STUCK_S and bool(self._troubles.lines())
        return (quiet and not any(self._hands())) or self._rooms.intake.over

    def _check_watch(self) -> None:
        if not self._once and self._watch.check():
            self._rooms.intake.rescan()
        self._teller.watch = self._watch.note

    def _check_journal(self) -> None:
        with contextlib.suppress(OSError):  # a disk that does not answer is waited for by those who write
            if JOURNAL_FILE not in os.listdir(self.state_dir):
                self._lost = f"the journal was taken out of {self.state_dir}"

    def _check_memory(self) -> None:
        if now_s() - self._memory_seen_s >= _MEMORY_PAUSE_S and not self._once:
            self._memory_seen_s = now_s()
            self._overgrown = self._guard.look(memory.resident_bytes())

    def _check_sleep(self) -> None:
        """A machine that slept may have missed events; the clock that only grows did not see the time go by."""
        if self._nap.over(now_s(), wall_s()) and not self._once:
            log.info("the machine slept, or its clock was set; the inboxes are looked through")
            self._rooms.intake.rescan()

    def _condition(self) -> Condition:
        troubles = self._troubles.lines()
        if troubles:
            more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
            return Condition("degraded", troubles[0] + more)
        if self._rooms.engine.loading:
            return Condition("starting", "the model is being loaded")
        return Condition("running", "paused: frames wait in the inbox" if self._rooms.intake.paused else "")

    def _check_limits(self) -> float:
        """End the process when a call has taken too long; returns seconds until that can next be so."""
        now = now_s()
        pause_s = _MEMORY_PAUSE_S if self._guard.worried else HEARTBEAT_S
        for hand in self._hands():
            if hand.overdue(now):
                self._die(hand)
            pause_s = min(pause_s, hand.left_s(now), _MEMORY_PAUSE_S)
        return pause_s

    def _hands(self) -> Iterator[Hand]:
        return hands(self._rooms.loader, self._rooms.engine, self._rooms.finisher, self.settings.limits)

    def _die(self, hand: Hand) -> None:
        """A native call hangs: nothing can interrupt it, so the process goes, after saying who did it."""
        log.error("%s. The process ends with %d; the next start goes on", hand, ExitCode.INTERNAL)
        recovery.say_last_words(self.state_dir, hand.frame, str(hand))
        logging.shutdown()
        os._exit(ExitCode.INTERNAL)

    # -- stopping -------------------------------------------------------------------------------------------------

    def _stop(self, journal: Journal) -> int:
        """Everything down, in order; what is still in hand goes back. Raises the failure that ended the work."""
        failure = self._rooms.failure()
        stuck = bool(self._troubles.lines())
        self._teller.show(Condition("stopping"), now=True)
        ended = stop_threads(self._watch, self._service, self._rooms, now_s() + STOP_BUDGET_S)
        guilty, why = self._rooms.guilty(self.settings.limits, overgrown=bool(self._overgrown) and not ended)
        left = recovery.give_back(journal, guilty)
        if guilty is not None:
            recovery.say_last_words(self.state_dir, guilty, why)
        log.info("stopped. %s", f"{left} frames wait for the next start" if left else "Nothing is in hand")
        code = self._exit_code(failure, stuck=stuck)
        reason = str(failure or self._overgrown or self._lost or "; ".join(self._troubles.lines()[:1]))
        if self._overgrown or self._lost:
            log.warning("%s. The process ends, to be started anew", self._overgrown or self._lost)
        self._teller.show(Condition("stopped", reason), now=True)
        if not ended:
            if not self._overgrown:
                self.network.ends_on_purpose()  # a provider that is being tried is to blame for memory alone
            # A thread is inside a native call that may take minutes; everything that matters is on disk.
            logging.shutdown()
            os._exit(code)
        if isinstance(failure, WatcherError):
            raise failure
        return code

    def _exit_code(self, failure: BaseException | None, *, stuck: bool) -> int:
        if isinstance(failure, WatcherError):
            return failure.exit_code
        if failure is not None:
            return ExitCode.INTERNAL
        if (self._once and stuck) or self._overgrown or self._lost:
            return ExitCode.TRY_LATER
        return ExitCode.SOME_FAILED if self._once and self.tally.failed else ExitCode.DONE
