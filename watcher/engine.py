"""Engine: the ONE thread that opens, warms up, runs and closes the session. It does nothing else.

Touches: the session, which nobody else may touch. A failure of the session ends the process, so that launchd starts
a fresh one; the frame in hand stays counted as tried, all others are given back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from watcher.clock import now_s
from watcher.depth import Plan
from watcher.effort import Effort
from watcher.errors import SessionError, Unavailable, WatcherError
from watcher.frame import Frame, Raw, Ready
from watcher.handover import Handover
from watcher.session import Report, SessionLike, Shape

log = logging.getLogger(__name__)


class Engine:
    def __init__(self, open_session: Callable[[], SessionLike], plan: Callable[[Shape], Plan]) -> None:
        self.raw: Handover[Raw] = Handover(2)
        self.stopping = threading.Event()
        self.failure: WatcherError | None = None
        self.in_hand: tuple[Frame | None, float] | None = None
        self.report: Report | None = None
        self.effort = Effort(1)
        self._open_session = open_session
        self._plan_for = plan
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
        session: SessionLike | None = None
        try:
            self.in_hand = (None, now_s())
            session = self._open_session()
            session.warm_up()
            self.report = session.report
            self._plan = self._plan_for(session.shape)
            self.in_hand = None
            self._known.set()
            self._wake()
            self._serve(session)
        except WatcherError as error:
            self.failure = error
        except BaseException as error:
            log.exception("the engine ended by an error that nobody expected")
            self.failure = SessionError(f"the engine failed: {type(error).__name__}: {error}")
        finally:
            if session is not None:
                session.close()
            self._known.set()
            if self.failure is not None:
                log.error("%s", self.failure)
                self._wake()
                self._drain()

    def _serve(self, session: SessionLike) -> None:
        assert self._ready is not None
        while (ready := self._ready.take()) is not None:
            if self.stopping.is_set():
                self._leave(ready.frame)
                continue
            if ready.frame.call is not None and not ready.frame.call.wanted():
                continue
            if ready.depth is not None:
                self.raw.give(Raw(ready.frame, ready.depth, ready.height_px, ready.width_px, ready.facts, ready.aside))
                continue
            began_s = now_s()
            self.in_hand = (ready.frame, began_s)
            depth = session.run(ready.tensor)
            self.in_hand = None
            self.effort.note(0, now_s() - began_s)
            log.debug("%s: run in %.1f ms", ready.frame, self.effort.took_ms)
            self.raw.give(Raw(ready.frame, depth, ready.height_px, ready.width_px, ready.facts, ready.aside))

    def _drain(self) -> None:
        """After a failure the loaders must not wait for a taker for ever."""
        assert self._ready is not None
        if self.in_hand is not None and self.in_hand[0] is not None:
            self._leave(self.in_hand[0])
        while (ready := self._ready.take()) is not None:
            self._leave(ready.frame)

    def _leave(self, frame: Frame) -> None:
        if frame.call is not None:
            frame.call.answer(Unavailable("the daemon is stopping", "Try again when it runs."))
