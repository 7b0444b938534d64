"""Runs: a run of the network that was begun, and what came of it. More than one may be under way on the processor.

The runtime cuts every operator into equal parts, one for each of its threads, and waits for the last of them; a thread
that has to step aside for a loader holds up all the others. Where the network runs on the processor two runs are
therefore begun side by side: whoever waits in the one works in the other. Only the session's own thread begins them
and asks for their maps; in between they belong to the runtime.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from watcher.clock import now_s
from watcher.errors import SessionError
from watcher.frame import Float32
from watcher.session import runtime

LANES = 2  # three or four runs side by side were no faster (docs/performance.md), and each needs its own memory


class Run:
    """Under way until ``over``; ``result`` waits for that."""

    def __init__(self, ended: Callable[[], None] = lambda: None, feed: Any = None) -> None:
        """``ended`` is called when it is over, by a thread that may be the runtime's: it must not ask which it is.

        ``feed`` is kept until then: 1.16 reads tensors where they are and holds on to none of them.
        """
        self._feed = feed
        self._heard: weakref.ref[Any] | None = None
        self._ended = threading.Event()
        self._tell = ended
        self._make: Callable[[], Float32] | None = None
        self._ended_s = 0.0

    @property
    def over(self) -> bool:
        return self._ended.is_set()

    @property
    def left(self) -> bool:
        """Whether the runtime's thread has come back from telling of the end. Before that its session must not go."""
        return self.over and (self._heard is None or self._heard() is None)

    @property
    def ended_s(self) -> float | None:
        """When it was over, on the program's clock; ``None`` before that."""
        return self._ended_s if self.over else None

    def wait(self) -> None:
        self._ended.wait()

    def result(self) -> Float32:
        """The map (h, w) float32. Raises whatever the run ended by, ``SessionError`` for a refusal of the runtime."""
        self.wait()
        assert self._make is not None
        return self._make()

    def heard_by(self, heard: Callable[..., None]) -> None:
        """``heard`` is what the runtime calls, and lets go of when it has."""
        self._heard = weakref.ref(heard)

    def end(self, make: Callable[[], Float32]) -> None:
        """It is over; ``make`` gives the map or raises, in the thread that asks for it. Once, from any thread.

        Nothing is raised here: an error would keep hold, by its traceback, of what the runtime is to let go of.
        """
        self._make = make
        self._ended_s = now_s()
        self._feed = None
        self._ended.set()
        self._tell()


def at_once(make: Callable[[], Float32]) -> Run:
    """A run that is over when it is begun: of a session that has one lane, or one that was refused."""
    run = Run()
    try:
        made = make()
    except Exception as error:
        run.end(raising(error))
    else:
        run.end(lambda: made)
    return run


def raising(error: Exception) -> Callable[[], Float32]:
    def make() -> Float32:
        raise error

    return make


def side_by_side(
    inner: Any, output: str, feed: dict[str, Any], one_map: Callable[[Any], Float32], ended: Callable[[], None]
) -> Run:
    """Begin a run in the runtime's own threads. ``one_map`` of its output is the map."""
    run = Run(ended, feed)

    def heard(results: Any, _data: Any, fault: str) -> None:
        # In a thread of the runtime, which knows nothing of ours: nothing here may log, or ask which thread it is.
        run.end(lambda: _map_or_fault(results, fault, one_map))

    run.heard_by(heard)
    try:
        inner.run_async([output], feed, heard, None)
    except Exception as error:  # refused before it began
        run.end(raising(SessionError(f"the network failed to run: {runtime.first_line(error)}")))
    return run


def _map_or_fault(results: Any, fault: str, one_map: Callable[[Any], Float32]) -> Float32:
    if fault:
        raise SessionError(f"the network failed to run: {runtime.first_line(fault)}")
    (result,) = results
    return one_map(result)
