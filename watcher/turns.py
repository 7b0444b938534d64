"""Turns: the frames of a live shot are decided about in the order in which they were handed on.

Two loaders and two finishers may overtake each other, and a running range that sees the frames in another order is
another range. So a frame waits at two lines: when it is loaded, until those before it are loaded, and when it is
finished, until those before it have their range. The queues between keep their order and the network has one thread,
so whoever is first in a line never waits for anyone behind it.

At a stop nobody waits, and nobody moves up: whoever is given back without having had its turn keeps its place, so that
the next start finds those behind it as undecided as it is itself.
"""

from __future__ import annotations

import threading

from watcher.frame import Frame


class Line:
    """Who is before whom, shot by shot; holds only frames that are on their way."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._shots: dict[str, list[int]] = {}
        self._shot_of: dict[int, str] = {}
        self._staying: set[int] = set()  # only at a stop, so it holds no more than is on its way then
        self._over = False

    def join(self, frame: Frame, shot: str) -> None:
        with self._news:
            self._shot_of[frame.id] = shot
            self._shots.setdefault(shot, []).append(frame.id)

    def wait(self, frame: Frame) -> bool:
        """Until nobody of its shot is before it: True; at once for a frame that stands in no line.

        False when all is over and its turn has not come: it must be given back, and keeps its place.
        """
        with self._news:
            self._news.wait_for(lambda: self._over or self._is_first(frame.id))
            if not self._is_first(frame.id):
                self._staying.add(frame.id)
                return False
            return True

    def stay(self, frame: Frame) -> None:
        """It is given back because a stop has come, before it had its turn: nobody behind it moves up."""
        with self._news:
            self._staying.add(frame.id)

    def leave(self, frame: Frame) -> None:
        """From any thread, more than once: whoever hands a frame on may be overtaken by whoever has ended it."""
        with self._news:
            shot = None if frame.id in self._staying else self._shot_of.pop(frame.id, None)
            if shot is None:
                return
            self._shots[shot].remove(frame.id)
            if not self._shots[shot]:
                del self._shots[shot]
            self._news.notify_all()

    def end(self) -> None:
        """At a stop nobody waits any more."""
        with self._news:
            self._over = True
            self._news.notify_all()

    def _is_first(self, number: int) -> bool:
        shot = self._shot_of.get(number)
        return shot is None or self._shots[shot][0] == number


class Turns:
    """``loading``: left when the frame goes to the network; ``finishing``: left when it has its range."""

    def __init__(self) -> None:
        self.loading, self.finishing = Line(), Line()

    def join(self, frame: Frame, shot: str) -> None:
        """By the one thread that hands frames on, before it does."""
        self.loading.join(frame, shot)
        self.finishing.join(frame, shot)

    def leave(self, frame: Frame) -> None:
        """The frame has left the path, however."""
        self.loading.leave(frame)
        self.finishing.leave(frame)

    def end(self) -> None:
        self.loading.end()
        self.finishing.end()
