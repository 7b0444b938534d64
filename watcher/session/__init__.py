"""The network, ready to run: one session, owned by the one thread that opened it.

Nothing in here is shared. The engine opens, warms up, runs and closes its session; any other thread that touches it
gets ``WrongThread``, because a session that wanders between threads and forks is what this program exists to prevent.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from watcher.clock import now_s, pause
from watcher.errors import SessionError, WrongThread
from watcher.frame import Float32
from watcher.session import ladder, runtime
from watcher.session.graph import Graph, Shape, Surface, Value
from watcher.session.ladder import condemn, forgive
from watcher.session.provider import COREML, CoreMLOptions, Options, Report
from watcher.session.runs import LANES, Run, at_once, raising, side_by_side
from watcher.session.runtime import probe
from watcher.session.trial import Trial, golden

__all__ = [
    "LANES",
    "CoreMLOptions",
    "Graph",
    "Options",
    "Report",
    "Run",
    "Session",
    "SessionLike",
    "Shape",
    "Trial",
    "Value",
    "at_once",
    "condemn",
    "forgive",
    "golden",
    "has_coreml",
    "open_count",
    "open_session",
    "probe",
]

_open: weakref.WeakSet[Session] = weakref.WeakSet()
_never_ended: list[Any] = []  # kept until the process ends: memory is lost, and nothing else
_LEAVING_S = 10.0


def open_count() -> int:
    """How many sessions are open in this process; while it is not 0, no process may be started."""
    return len(_open)


def has_coreml() -> bool:
    """Whether this build of ONNX Runtime has CoreML; loads it. Raises ``ConfigError`` where there is none."""
    return COREML in runtime.runtime().get_available_providers()


def open_session(path: Path, options: Options | None = None) -> Session:
    """Load a network for this thread, and for this thread only.

    Raises ``ModelError`` (the file is missing, unreadable or of a shape that cannot be fed), ``ConfigError`` (the
    provider that was asked for is not there and may not be replaced), ``SessionError`` (the runtime failed).
    """
    start = now_s()
    options = options or Options()
    if options.trials_dir is None:
        loaded = runtime.load(path, options)
    else:
        loaded = ladder.load(path, options, options.trials_dir)
    report = replace(loaded.report, load_ms=(now_s() - start) * 1000)
    return Session(loaded.inner, loaded.surface, report, loaded.lanes)


class SessionLike(Protocol):
    """What the engine needs of a session; the real one and the fake of the tests pass the same suite."""

    report: Report
    lanes: int

    @property
    def shape(self) -> Shape: ...

    def run(self, tensor: Float32) -> Float32: ...

    def begin(self, tensor: Float32, ended: Callable[[], None] = ...) -> Run: ...

    def warm_up(self, runs: int = 1) -> float: ...

    def close(self) -> None: ...


class Session:
    """Made by ``open_session``. ``report`` says what runs, ``shape`` what it takes, ``lanes`` how many at once."""

    def __init__(self, inner: Any, surface: Surface, report: Report, lanes: int = 1) -> None:
        self._inner = inner
        self._surface = surface
        self._owner = threading.current_thread()
        self._under_way: list[Run] = []
        self.report = report
        self.lanes = lanes
        _open.add(self)

    @property
    def shape(self) -> Shape:
        return self._surface.shape

    def run(self, tensor: Float32) -> Float32:
        """Run the network once.

        ``tensor`` (1, 3, h, w) float32, as ``shape`` wants it. Returns (h, w) float32, relative inverse depth, larger
        is nearer; NaN and infinities are passed on. Raises ``WrongThread``, or ``SessionError`` for everything that
        the runtime refuses and for an output that is not one map.
        """
        return self.begin(tensor).result()

    def begin(self, tensor: Float32, ended: Callable[[], None] = lambda: None) -> Run:
        """Begin a run; at most ``lanes`` may be under way. With one lane it is over when this returns.

        ``ended`` is called, by any thread, when a run that was still under way is over.
        Raises ``WrongThread``; all else that ``run`` raises comes out of the run's ``result``.
        """
        self._check_owner("run")
        try:
            if self._inner is None:
                raise SessionError("the session is closed")
            self._check_tensor(tensor)
        except SessionError as error:
            return at_once(raising(error))
        feed = {self._surface.input: tensor.astype(self._surface.dtype, copy=False)}
        if self.lanes == 1:
            return at_once(lambda: self._run_now(feed))
        self._under_way = [run for run in self._under_way if not run.left]
        run = side_by_side(self._inner, self._surface.output, feed, _one_map, ended)
        self._under_way.append(run)
        return run

    def _run_now(self, feed: dict[str, Any]) -> Float32:
        try:
            (result,) = self._inner.run([self._surface.output], feed)
        except Exception as error:  # the runtime has a dozen classes of its own, and any of them ends this run
            raise SessionError(f"the network failed to run: {runtime.first_line(error)}") from error
        return _one_map(result)

    def warm_up(self, runs: int = 1) -> float:
        """Run on plain gray so that the first frame does not pay for it; returns the last run's milliseconds."""
        gray = np.full((1, 3, self.shape.height_px, self.shape.width_px), 0.5, np.float32)
        took_ms = 0.0
        for _ in range(max(1, runs)):
            start = now_s()
            self.run(gray)
            took_ms = (now_s() - start) * 1000
        self.report = replace(self.report, warmup_ms=took_ms)
        return took_ms

    def close(self) -> None:
        """Let go of the network, after the runs under way; harmless a second time. Raises ``WrongThread``."""
        self._check_owner("close")
        for run in self._under_way:
            run.wait()  # the runtime would pull the network away under them
        # Its end waits for the runtime's threads without letting go of the interpreter, which the one that told of the
        # last end may still be waiting for: neither would ever go on.
        until_s = now_s() + _LEAVING_S
        while not all(run.left for run in self._under_way):
            if now_s() > until_s:
                _never_ended.append(self._inner)
                break
            pause(0.001)
        self._under_way = []
        self._inner = None
        _open.discard(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_owner(self, verb: str) -> None:
        here = threading.current_thread()
        if here is not self._owner:
            raise WrongThread(
                f"thread {here.name!r} tried to {verb} the session of thread {self._owner.name!r}",
                "Only the thread that opened a session may touch it.",
            )

    def _check_tensor(self, tensor: Float32) -> None:
        shape = self._surface.shape
        wanted = (1, 3, shape.height_px, shape.width_px)
        fits = tensor.shape == wanted if shape.fixed else tensor.ndim == 4 and tensor.shape[:2] == (1, 3)
        if tensor.dtype != np.float32 or not fits:
            raise SessionError(
                f"the tensor is {tensor.shape} {tensor.dtype}, the network takes {wanted} float32"
                + ("" if shape.fixed else " or larger")
            )


def _one_map(result: Any) -> Float32:
    """(h, w) float32 of (h, w), (1, h, w) or (1, 1, h, w)."""
    array = np.asarray(result)
    if 2 <= array.ndim <= 4 and array.shape[-1] > 0 and array.shape[-2] > 0 and set(array.shape[:-2]) <= {1}:
        return np.ascontiguousarray(array.reshape(array.shape[-2:]), dtype=np.float32)
    raise SessionError(
        f"the network returned {array.shape}, not one map",
        "It must return (1, height, width), (1, 1, height, width) or (height, width).",
    )
