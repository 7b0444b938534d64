"""Wait for something to become true, with a deadline: the only waiting that tests do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from watcher.clock import now_s

T = TypeVar("T")
_LOOK_EVERY_S = 0.02


def until(look: Callable[[], T], seconds: float = 20.0, what: str = "") -> T:
    """What ``look`` returns as soon as that is true. Raises ``AssertionError`` at the deadline."""
    deadline_s = now_s() + seconds
    pause = threading.Event()
    while True:
        found = look()
        if found:
            return found
        if now_s() >= deadline_s:
            raise AssertionError(f"not within {seconds:g} s: {what or look!r}")
        pause.wait(_LOOK_EVERY_S)
