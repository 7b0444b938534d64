"""Crew: a few threads of one kind, each with a journal of its own, that take from above until nothing more comes."""

from __future__ import annotations

import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from watcher.clock import now_s
from watcher.course import Course
from watcher.depth.threads import one_thread_each
from watcher.effort import Effort
from watcher.errors import VolumeTrouble
from watcher.frame import Frame
from watcher.handover import Handover
from watcher.journal import Journal, Patience

log = logging.getLogger(__name__)

T = TypeVar("T")


class Crew(ABC, Generic[T]):
    """A thread that fails ends, sounds the alarm, and says which frame it had in hand."""

    def __init__(self, name: str, course: Course, threads: int) -> None:
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.guilty: Frame | None = None  # in hand when a thread failed
        self.in_hand: dict[int, tuple[Frame, float]] = {}  # thread number → (frame, since)
        self.effort = Effort(threads)
        self._course = course
        self._source: Handover[T] | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    def _take_from(self, source: Handover[T]) -> None:
        self._source = source
        one_thread_each()
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float) -> bool:
        until_s = now_s() + timeout_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until_s - now_s()))
        return not any(thread.is_alive() for thread in self._threads)

    @abstractmethod
    def _do(self, journal: Journal, number: int, item: T) -> None:
        """The work on one item, by thread ``number``."""

    @abstractmethod
    def _frame_of(self, item: T) -> Frame: ...

    @contextlib.contextmanager
    def _timed(self, number: int, frame: Frame) -> Iterator[None]:
        """What is held to a limit: the picture's own work, and no waiting for a volume."""
        self.in_hand[number] = (frame, now_s())
        try:
            yield
        finally:
            del self.in_hand[number]

    @contextlib.contextmanager
    def _working(self, number: int) -> Iterator[None]:
        """What counts as work of thread ``number``, less what is ``_resting``."""
        self.effort.began(number, now_s())
        try:
            yield
        finally:
            self.effort.ended(number, now_s())

    @contextlib.contextmanager
    def _resting(self, number: int) -> Iterator[None]:
        self.effort.rested(number, now_s())
        try:
            yield
        finally:
            self.effort.resumed(number, now_s())

    def _run(self, number: int) -> None:
        assert self._source is not None
        item: T | None = None
        try:
            patience = Patience(self.stopping.wait, self._course.troubles.tell)
            with contextlib.closing(Journal(self._course.journal, patience)) as journal:
                while (item := self._source.take()) is not None:
                    self._do(journal, number, item)
        except BaseException as error:
            if isinstance(error, VolumeTrouble) and self.stopping.is_set():
                return  # the journal's disk was away; the next start sorts out what was in hand
            log.exception("a thread ended by an error that nobody expected")
            self.failure, self.guilty = error, None if item is None else self._frame_of(item)
            self._course.alarm()
