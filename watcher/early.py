"""Early: a stop that is asked for before the daemon listens is obeyed like any other, and is no crash.

Imported before anything that takes time. Nothing is in hand yet, so there is nothing to put in order.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import types

_LIVES = ("run", "once")  # the verbs that listen for a stop once they live
_WORKS = (*_LIVES, "depth")  # the verbs that handle pictures
_GARBAGE_MOST = 100_000  # containers; what a verb that only answers leaves behind is less


def heed(arguments: list[str] = sys.argv) -> None:
    """Until the daemon listens itself: SIGTERM, SIGINT and SIGHUP end ``run`` and ``once`` with 0."""
    if arguments[1:2] and arguments[1] in _LIVES:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, _end)


def hurry(arguments: list[str] = sys.argv) -> None:
    """A verb that only answers is nearly over when its garbage would first be looked for; pictures are too large to."""
    if arguments[1:2] and arguments[1] not in _WORKS:
        gc.set_threshold(_GARBAGE_MOST)


def _end(_number: int, _frame: types.FrameType | None) -> None:
    os._exit(0)
