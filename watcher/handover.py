"""The bounded queue between two kinds of thread: items go down, never back up.

A full handover blocks whoever gives, so a slow stage holds back the ones above it and nothing grows.
It is closed from above: takers drain what is left and then get ``None``.

It may have a second lane, for whoever must not wait: ``offer`` says at once whether there was room. The takers take
from both lanes in turn, so that neither side can starve the other, however much it gives.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Handover(Generic[T]):
    def __init__(self, capacity: int, on_take: Callable[[], None] | None = None, *, aside: int = 0) -> None:
        """``on_take`` is rung by the taker whenever a place becomes free. ``aside``: places of the second lane."""
        # One lock; each side waits for its own news, so that an item wakes the one thread that can use it.
        lock = threading.Lock()
        self._filled, self._freed = threading.Condition(lock), threading.Condition(lock)
        self._lane: deque[T] = deque()
        self._second: deque[T] = deque()
        self._second_next = False
        self._closed = False
        self._on_take = on_take
        self.capacity = capacity
        self.aside = aside

    def __len__(self) -> int:
        """How many items are in the first lane."""
        return len(self._lane)

    @property
    def waiting_aside(self) -> int:
        return len(self._second)

    def full(self) -> bool:
        return len(self._lane) >= self.capacity

    def give(self, item: T) -> None:
        """Hand an item down; waits for a free place."""
        with self._freed:
            self._freed.wait_for(lambda: not self.full())
            self._lane.append(item)
            self._filled.notify()

    def offer(self, item: T) -> bool:
        """Hand an item down by the second lane, at once; False where that is full or the handover is closed."""
        with self._filled:
            if self._closed or len(self._second) >= self.aside:
                return False
            self._second.append(item)
            self._filled.notify()
            return True

    def withdraw(self, item: T) -> bool:
        """Take back what was offered, where nobody has taken it yet."""
        with self._filled:
            held = [other for other in self._second if other is not item]
            found = len(held) < len(self._second)
            self._second = deque(held)
            return found

    def take(self, unless: Callable[[], bool] = lambda: False) -> T | None:
        """The next item; waits for one. ``None`` once the handover is closed and empty, for every taker.

        ``None`` as well where there is no item and ``unless`` is true, or becomes so: whoever makes it so calls
        ``nudge``.
        """
        with self._filled:
            self._filled.wait_for(lambda: self._lane or self._second or self._closed or unless())
            if not self._lane and not self._second:
                return None
            aside = bool(self._second) and (self._second_next or not self._lane)
            item = (self._second if aside else self._lane).popleft()
            self._second_next = not aside
            if not aside:
                self._freed.notify()
        if self._on_take is not None and not aside:
            self._on_take()
        return item

    def nudge(self) -> None:
        """From any thread: what the taker waits for beside an item may have come true."""
        with self._filled:
            self._filled.notify_all()

    def close(self) -> None:
        """Nothing more will be given. Called once, by whoever joined all the givers."""
        with self._filled:
            self._closed = True
            self._filled.notify_all()
