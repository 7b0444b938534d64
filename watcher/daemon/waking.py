"""Waking: the main thread sleeps until a signal, another thread, or a time wakes it. Handlers only set a flag."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import types
from collections.abc import Iterator
from contextlib import contextmanager

# Ctrl-T in a terminal on a Mac; elsewhere, and for programs, SIGUSR1.
_ASK = tuple(getattr(signal, name) for name in ("SIGINFO", "SIGUSR1") if hasattr(signal, name))
_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Bell:
    """``stopped`` is the number of the signal that asked for the end, 0 before. ``asked``: a line is wanted."""

    def __init__(self) -> None:
        self.stopped = 0
        self.asked = False
        self._near: socket.socket | None = None
        self._far: socket.socket | None = None

    def ring(self) -> None:
        """From any thread: there is something for the main thread to see."""
        if self._far is not None:
            with contextlib.suppress(OSError):  # full: it will wake anyway; closed: the process is ending
                self._far.send(b"!")

    def wait(self, seconds: float) -> bool:
        """Sleep until rung, at most so long; True when rung."""
        assert self._near is not None
        ready, _, _ = select.select([self._near], [], [], seconds)
        if ready:
            with contextlib.suppress(BlockingIOError):
                self._near.recv(4096)
        return bool(ready)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Listen, to threads and to signals; the handlers of before come back afterwards."""
        self._near, self._far = socket.socketpair()
        with self._near, self._far:
            self._near.setblocking(False)
            self._far.setblocking(False)
            stops = [number for number in _STOP if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup wants it
            before = {number: signal.signal(number, self._note) for number in stops}
            before.update((number, signal.signal(number, self._note_asked)) for number in _ASK)
            # Without this, a signal would be seen only when the wait is over.
            wakeup = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(wakeup)
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _note(self, number: int, _frame: types.FrameType | None) -> None:
        self.stopped = number

    def _note_asked(self, _number: int, _frame: types.FrameType | None) -> None:
        self.asked = True
