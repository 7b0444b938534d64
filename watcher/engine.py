"""Engine: the ONE thread that opens, warms up, runs and closes the session. It does nothing else.

Touches: the session, which nobody else may touch. Where the session has lanes, the next run is begun before the one
under way is over; maps are asked for in the order in which runs were begun. A failure of the session ends the process,
so that launchd starts a fresh one; the frame in hand stays counted as tried, all others are given back.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from watcher.clock import now_s
from watcher.depth import Plan
from watcher.effort import RunEffort, Span
from watcher.errors import SessionError, Unavailable, WatcherError
from watcher.frame import Float32, Frame, Raw, Ready
from watcher.handover import Handover
from watcher.session import Report, Run, SessionLike, Shape

log = logging.getLogger(__name__)

_FLAT = 0.05  # of a tensor whose values span about 1


@dataclass(slots=True)
class UnderWay:
    """``ready`` is ``None`` while the session is being opened. ``run``: once it was begun."""

    ready: Ready | None
    since_s: float
    run: Run | None = None

    @property
    def frame(self) -> Frame | None:
        return None if self.ready is None else self.ready.frame

    @property
    def held(self) -> bool:
        """Whether a native call has it in hand."""
        run = self.run  # looked at by other threads
        return run is None or not run.over


class Engine:
    def __init__(
        self,
        open_session: Callable[[], SessionLike],
        plan: Callable[[Shape], Plan],
        condemn: Callable[[Report, Float32], bool] = lambda report, tensor: False,
    ) -> None:
        """``condemn``: what runs gave this tensor a map that cannot be right; whether opening anew gives another."""
        self.raw: Handover[Raw] = Handover(2)
        self.stopping = threading.Event()
        self.failure: WatcherError | None = None
        self.under_way: deque[UnderWay] = deque()  # oldest first
        self.report: Report | None = None
        self.effort = RunEffort(self._runs)
        self._open_session = open_session
        self._plan_for = plan
        self._condemn = condemn
        self._session: SessionLike | None = None
        self._plan: Plan | None = None
        self._known = threading.Event()
        self._ready: Handover[Ready] | None = None
        self._wake: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self, ready: Handover[Ready], wake: Callable[[], None]) -> None:
        """``wake`` is rung when the session is open and when it has failed."""
        self._ready, self._wake = ready, wake
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def plan(self) -> Plan | None:
        """How pictures fill the network's input; waits until it is known, ``None`` when it never will be."""
        self._known.wait()
        return self._plan

    def give_up_waiting(self) -> None:
        """At a stop: nobody waits for a session that is still loading."""
        self.stopping.set()
        self._known.set()

    @property
    def loading(self) -> bool:
        return not self._known.is_set()

    def _run(self) -> None:
        try:
            session = self._open()
            self._plan = self._plan_for(session.shape)
            self._known.set()
            self._wake()
            self._serve()
        except WatcherError as error:
            self.failure = error
        except BaseException as error:
            log.exception("the engine ended by an error that nobody expected")
            self.failure = SessionError(f"the engine failed: {type(error).__name__}: {error}")
        finally:
            self._close()
            self._known.set()
            if self.failure is not None:
                log.error("%s", self.failure)
                self._wake()
                self._drain()

    def _open(self) -> SessionLike:
        """A session that has run once. Loading has a limit of its own, so nobody's frame is in hand."""
        self.under_way.appendleft(UnderWay(None, now_s()))
        self._session = self._open_session()
        self._session.warm_up()
        self.report = self._session.report
        self.under_way.popleft()
        return self._session

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _map_of(self, oldest: UnderWay) -> Float32:
        """What came of a run; a map that cannot be right is made again by another provider, where there is one."""
        assert self._session is not None
        assert oldest.run is not None
        assert oldest.ready is not None
        while True:
            depth = oldest.run.result()
            tensor = oldest.ready.tensor
            if not suspicious(tensor, depth) or not self._condemn(self._session.report, tensor):
                return depth
            log.warning("%s: %s gave a map without content; another provider is tried", oldest.frame, self._rung())
            self._close()
            self._open()
            self._begin(oldest)
            self._wake()

    def _begin(self, next_one: UnderWay) -> None:
        assert self._session is not None
        assert self._ready is not None
        assert next_one.ready is not None
        next_one.run, next_one.since_s = None, now_s()
        next_one.run = self._session.begin(next_one.ready.tensor, self._ready.nudge)

    def _rung(self) -> str:
        report = self.report
        return report.trial_key.rpartition(" | ")[2] or report.provider if report is not None else ""

    def _serve(self) -> None:
        assert self._ready is not None
        while self.under_way or (ready := self._ready.take()) is not None:
            if self.under_way:
                ready = self._another()
            if ready is None:
                self._hand_on()
            else:
                self._take_up(ready)

    def _another(self) -> Ready | None:
        """What can be begun before the oldest run is over, if a lane is free; waits until one of the two comes."""
        assert self._ready is not None
        assert self._session is not None
        if len(self.under_way) == self._session.lanes:
            return None
        oldest = self.under_way[0]
        return self._ready.take(unless=lambda: not oldest.held)

    def _runs(self) -> list[Span]:
        """From and to when each frame under way was run; looked at by other threads."""
        return [
            (held.since_s, None if (run := held.run) is None else run.ended_s)
            for held in self.under_way.copy()
            if held.ready is not None
        ]

    def _take_up(self, ready: Ready) -> None:
        """Begin the run of a frame that is still wanted and needs one."""
        if self.stopping.is_set():
            self._leave(ready.frame)
        elif ready.frame.call is not None and not ready.frame.call.wanted():
            pass
        elif ready.depth is not None:
            self._give(ready, ready.depth)
        else:
            self.under_way.append(UnderWay(ready, now_s()))
            self._begin(self.under_way[-1])

    def _hand_on(self) -> None:
        """The map of the oldest run under way, to the finishers."""
        oldest = self.under_way[0]
        depth = self._map_of(oldest)
        assert oldest.ready is not None
        assert oldest.run is not None
        self.effort.ran(oldest.since_s, oldest.run.ended_s or now_s())
        self.under_way.popleft()
        log.debug("%s: run in %.1f ms", oldest.frame, self.effort.took_ms)
        self._give(oldest.ready, depth)

    def _give(self, ready: Ready, depth: Float32) -> None:
        self.raw.give(Raw(ready.frame, depth, ready.height_px, ready.width_px, ready.facts, ready.aside))

    def _drain(self) -> None:
        """After a failure the loaders must not wait for a taker for ever."""
        assert self._ready is not None
        for held in self.under_way:
            if held.frame is not None:
                self._leave(held.frame)
        while (ready := self._ready.take()) is not None:
            self._leave(ready.frame)

    def _leave(self, frame: Frame) -> None:
        if frame.call is not None:
            frame.call.answer(Unavailable("the daemon is stopping", "Try again when it runs."))


def suspicious(tensor: Float32, depth: Float32) -> bool:
    """Whether ``depth`` (h, w) cannot be a map of ``tensor`` (1, 3, h, w): not finite, or flat.

    A picture that is nearly of one colour may well have a flat map, so each channel is looked at by itself.
    """
    if not np.isfinite(depth).all():
        return True
    return float(np.ptp(depth)) == 0 and float(np.ptp(tensor, axis=(2, 3)).max()) > _FLAT
