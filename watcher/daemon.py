"""Daemon: one process, one lock, and the order in which everything starts and stops.

Start:  locks → journal → recovery → leftovers → engine, loader, finisher, intake → watch
Stop:   watch → intake → loader → engine → finisher → what is left is given back → locks

Signal handlers only set a flag; the main thread, which waits here, does the rest.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from watcher import __version__, config, durable, recovery, settle, status, volume
from watcher.clock import now_s, stamp
from watcher.engine import Engine
from watcher.errors import ExitCode, WatcherError
from watcher.finisher import Finisher
from watcher.folder import Folder
from watcher.frame import Frame, Outcome
from watcher.instance import alone, crash_trace
from watcher.intake import Intake
from watcher.journal import Journal
from watcher.loader import Loader
from watcher.network import Network
from watcher.watch import Root, Watch

log = logging.getLogger(__name__)

STOP_BUDGET_S = 4.0  # launchd's ExitTimeOut and a user's patience are both longer
_HEARTBEAT_S = 10.0
_STATUS_PAUSE_S = 0.5
_RATE_WINDOW_S = 60.0
_ONCE_PATIENCE_S = 5.0
_ONCE_STUCK_S = 10.0
JOURNAL_FILE = "journal.db"


@dataclass(slots=True)
class Tally:
    """How the frames of this run ended."""

    done: int = 0
    failed: int = 0

    def note(self, outcome: Outcome) -> None:
        self.done += outcome is Outcome.DONE
        self.failed += outcome is Outcome.FAILED


class Daemon:
    """``once``: no watching; ends when nothing is left to do. ``tell`` is shown every new snapshot, ``heard`` every frame
    that leaves the path."""

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
        self._signal = 0
        self._started = stamp()
        self._state = "starting"
        self._reason = ""
        self._told_s = 0.0
        self._quiet_since_s = now_s()
        self._ring, self._bell = socket.socketpair()
        self._ring.setblocking(False)
        self._bell.setblocking(False)
        self.network = Network(settings)
        self.folders = [Folder(i, folder, self.network.name) for i, folder in enumerate(settings.folders)]

    # -- the life -------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Live until a signal, a failure, or (``once``) the end of the work; returns the exit code.

        Raises ``AnotherInstance``, ``ConfigError``, ``ModelError``, ``OSError`` (the state folder).
        """
        durable.make_folder(self.state_dir, 0o700)
        note = f"{os.getpid()} {'once' if self._once else 'run'} since {self._started}"
        inboxes = [folder.settings.inbox for folder in self.folders]
        with alone(self.state_dir, inboxes, note), crash_trace(self.state_dir), self._signals():
            try:
                return self._live()
            finally:
                self._ring.close()
                self._bell.close()

    def _live(self) -> int:
        self._journal = Journal(self.state_dir / JOURNAL_FILE)
        try:
            self._journal.create()
            recovery.recover(self._journal, self.folders, self.state_dir, self.settings.limits.max_attempts)
            removed = recovery.clean(self.folders)
            if removed:
                log.info("%d half-written files of an earlier run were removed", removed)
            self._build()
            self._start()
            self._wait()
            return self._stop()
        finally:
            self._journal.close()

    def _build(self) -> None:
        watch, limits = self.settings.watch, self.settings.limits
        journal = self.state_dir / JOURNAL_FILE
        patience_s = min(_ONCE_PATIENCE_S, watch.patience_s) if self._once else watch.patience_s
        self._intake = Intake(self.folders, journal, settle.Rules(watch.settle_s, patience_s), watch.rescan_s)
        self._intake.on_idle = self._wake
        self._loader = Loader(self.folders, journal, limits, self._ended)
        self._engine = Engine(self.network.open, self.network.plan)
        self._finisher = Finisher(self.folders, journal, self._about, self._ended)
        polled = [f.index for f in self.folders if self._is_polled(f)]
        self._intake.polled = frozenset(polled)
        roots = [Root(f.settings.inbox, f.settings.recursive) for f in self.folders if f.index not in polled]
        self._watch = Watch([] if self._once else roots, self._intake.hint)

    def _is_polled(self, folder: Folder) -> bool:
        how = self.settings.watch.observer
        return how == "polling" or (how == "auto" and volume.is_network(folder.settings.inbox))

    def _start(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):  # told, and tried again, by intake and finisher
                folder.inbox.prepare()
                folder.outbox.prepare()
        self._engine.start(self._loader.ready, self._wake)
        self._loader.start(self._intake.work, self._engine.plan)
        self._finisher.start(self._engine.raw)
        self._intake.start()
        self._watch.start()
        self._snapshot(now=True)
        log.info("depth-watcher %s started, process %d", __version__, os.getpid())

    def _about(self) -> dict[str, str]:
        return self.network.about(self._engine.report)

    # -- waiting --------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """From any thread: there is something for the main thread to see."""
        with contextlib.suppress(OSError):  # full: it will wake anyway; closed: the process is ending
            self._bell.send(b"!")

    def _ended(self, frame: Frame, outcome: Outcome) -> None:
        self.tally.note(outcome)
        if self._heard is not None:
            self._heard(frame, outcome)
        self._intake.ended(frame, outcome)
        self._wake()

    def _wait(self) -> None:
        announced = False
        while not self._over():
            if not announced and self._engine.report is not None:
                announced = True
                self.network.announce(self._engine.report)
            if not self._once:
                why = self._watch.check()
                if why:
                    log.warning("watching was started anew: %s", why)
                    self._intake.rescan()
            self._state, self._reason = self._condition()
            pause_s = min(self._snapshot(), self._check_limits())
            ready, _, _ = select.select([self._ring], [], [], pause_s)
            if ready:
                with contextlib.suppress(BlockingIOError):
                    self._ring.recv(4096)
                self._quiet_since_s = now_s()

    def _over(self) -> bool:
        if self._signal or self._failure() is not None:
            return True
        if not self._once:
            return False
        if self._intake.idle.is_set():
            return True
        return bool(self._troubles()) and now_s() - self._quiet_since_s > _ONCE_STUCK_S

    def _failure(self) -> BaseException | None:
        rooms = (self._engine, self._loader, self._finisher, self._intake)
        return next((room.failure for room in rooms if room.failure is not None), None)

    def _troubles(self) -> list[str]:
        both = {**self._intake.troubles, **self._finisher.troubles}
        return [f"{place}: {trouble}" for place, trouble in both.items()]

    def _condition(self) -> tuple[str, str]:
        troubles = self._troubles()
        if troubles:
            more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
            return "degraded", troubles[0] + more
        return ("starting", "the model is being loaded") if self._engine.loading else ("running", "")

    def _check_limits(self) -> float:
        """End the process when a call that cannot be interrupted takes too long; returns seconds to the next look."""
        limits = self.settings.limits
        hands = [("loading", limits.run_timeout_s, *hand) for hand in list(self._loader.in_hand.values())]
        hands += [("finishing", limits.run_timeout_s, *hand) for hand in list(self._finisher.in_hand.values())]
        engine = self._engine.in_hand
        if engine is not None and engine[0] is not None:
            hands.append(("the network's run", limits.run_timeout_s, engine[0], engine[1]))
        elif engine is not None:
            self._check_loading(now_s() - engine[1])
        pause_s = _HEARTBEAT_S
        for stage, limit_s, frame, since_s in hands:
            left_s = since_s + limit_s - now_s()
            if left_s <= 0:
                self._die(frame, f"{stage} of {frame.source.rel} took longer than {limit_s:g} s")
            pause_s = min(pause_s, left_s)
        return max(0.01, pause_s)

    def _check_loading(self, took_s: float) -> None:
        if took_s > self.settings.limits.load_timeout_s:
            self._die(None, f"loading the model took longer than {self.settings.limits.load_timeout_s:g} s")

    def _die(self, frame: Frame | None, what: str) -> None:
        """A native call hangs: nothing can interrupt it, so the process goes, after saying who did it."""
        log.error("%s. The process ends with %d; the next start goes on", what, ExitCode.INTERNAL)
        recovery.say_last_words(self.state_dir, frame, what)
        logging.shutdown()
        os._exit(ExitCode.INTERNAL)

    # -- stopping -------------------------------------------------------------------------------------------------

    def _stop(self) -> int:
        """Everything down, in order; what is still in hand goes back. Raises the failure that ended the work."""
        failure = self._failure()
        guilty = self._engine.in_hand[0] if failure is not None and self._engine.in_hand is not None else None
        self._state = "stopping"
        self._snapshot(now=True)
        ended = self._stop_threads(now_s() + STOP_BUDGET_S)
        left = self._give_back(guilty)
        if guilty is not None:
            recovery.say_last_words(self.state_dir, guilty, f"the network failed on {guilty.source.rel}: {failure}")
        log.info("stopped. %s", f"{left} frames wait for the next start" if left else "Nothing is in hand")
        self._state, self._reason = "stopped", str(failure or "")
        self._snapshot(now=True)
        code = self._exit_code(failure)
        if not ended:
            # A thread is inside a native call that may take minutes; everything that matters is on disk.
            logging.shutdown()
            os._exit(code)
        if isinstance(failure, WatcherError):
            raise failure
        return code

    def _stop_threads(self, until_s: float) -> bool:
        def left_s() -> float:
            return max(0.0, until_s - now_s())

        self._watch.stop()
        for room in (self._loader, self._finisher):
            room.stopping.set()
        self._engine.give_up_waiting()
        self._intake.stop()
        ended = self._intake.join(left_s())
        self._intake.work.close()
        ended = self._loader.join(left_s()) and ended
        if ended:
            self._loader.ready.close()
            ended = self._engine.join(left_s())
        if ended:
            self._engine.raw.close()
            ended = self._finisher.join(left_s())
        return ended

    def _give_back(self, guilty: Frame | None) -> int:
        """What was in hand goes back, uncounted, so that a stop is never taken for a crash."""
        rows = [row for row in self._journal.in_state("attempt") if guilty is None or row.id != guilty.id]
        for row in rows:
            self._journal.give_back(row.id)
        return len(rows)

    def _exit_code(self, failure: BaseException | None) -> int:
        if isinstance(failure, WatcherError):
            return failure.exit_code
        if failure is not None:
            return ExitCode.INTERNAL
        if self._once and self._troubles():
            return ExitCode.TRY_LATER
        return ExitCode.SOME_FAILED if self._once and self.tally.failed else ExitCode.DONE

    # -- telling --------------------------------------------------------------------------------------------------

    def _snapshot(self, *, now: bool = False) -> float:
        """Write the status file, not more often than needed; returns seconds until it should be written again."""
        since_s = now_s() - self._told_s
        if not now and since_s < _STATUS_PAUSE_S:
            return _STATUS_PAUSE_S - since_s
        self._told_s = now_s()
        snapshot = self._look()
        with contextlib.suppress(OSError):  # a full disk must not end the daemon
            status.write(self.state_dir, snapshot)
        if self._tell is not None:
            self._tell(snapshot)
        return _HEARTBEAT_S

    def _look(self) -> status.Snapshot:
        known = self._journal.counts()
        report = self._engine.report
        stages = {"load": self._loader.took_ms, "run": self._engine.took_ms, "finish": self._finisher.took_ms}
        return status.Snapshot(
            running=self._state != "stopped",
            pid=os.getpid(),
            state=self._state,
            reason=self._reason,
            provider=report.provider if report else "",
            model=self.network.name,
            notice=self.network.notice,
            counts=status.Counts(
                self._intake.waiting, len(known.in_flight), known.done, known.failed, self._intake.ignored
            ),
            in_flight=known.in_flight,
            rate=self._rate(),
            stages_ms={name: round(took_ms, 2) for name, took_ms in stages.items()},
            last_errors=tuple(
                status.Failure(row.rel, str((row.reason or {}).get("what", "")), stamp(row.ended_at))
                for row in self._journal.last_failures()
            ),
            inboxes=tuple(str(folder.settings.inbox) for folder in self.folders),
            started=self._started,
            updated=stamp(),
            version=__version__,
        )

    def _rate(self) -> float:
        now = now_s()
        recent = [at_s for at_s in list(self._finisher.done_at_s) if now - at_s < _RATE_WINDOW_S]
        return round(len(recent) / max(1.0, now - recent[0]), 3) if recent else 0.0

    # -- signals -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def note(number: int, _frame: types.FrameType | None) -> None:
            self._signal = number

        wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, note) for number in wanted}
        wakeup = signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
