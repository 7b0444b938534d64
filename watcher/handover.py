"""The bounded queue between two kinds of thread: items go down, never back up.

A full handover blocks whoever gives, so a slow stage holds back the ones above it and nothing grows.
It is closed from above: takers drain what is left and then get ``None``.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")

_END = object()


class Handover(Generic[T]):
    def __init__(self, capacity: int, on_take: Callable[[], None] | None = None) -> None:
        """``on_take`` is rung by the taker whenever a place becomes free."""
        self._queue: queue.Queue[object] = queue.Queue(capacity)
        self._on_take = on_take
        self.capacity = capacity

    def __len__(self) -> int:
        return self._queue.qsize()

    def full(self) -> bool:
        return self._queue.full()

    def give(self, item: T) -> None:
        """Hand an item down; waits for a free place."""
        self._queue.put(item)

    def take(self) -> T | None:
        """The next item; waits for one. ``None`` once the handover is closed and empty, for every taker."""
        item = self._queue.get()
        if item is _END:
            self._queue.put(_END)  # the next taker must see the end as well
            return None
        if self._on_take is not None:
            self._on_take()
        return cast(T, item)

    def close(self) -> None:
        """Nothing more will be given. Called once, by whoever joined all the givers."""
        self._queue.put(_END)
