"""The real program, run as ``python misbehaving.py VERB …`` with a network or a decoder that a test has chosen.

``FAKE_SESSION`` and ``FAKE_DECODER`` say what happens to a picture that is poisoned: a red one for the session, one
that has the word ``poison`` in its file for the decoder. Every other picture is done at once by a trivial network.
``FAKE_LOADING`` says what happens while the network is loaded. With ``FAKE_WATCH=deaf`` no event is ever heard.
``FAKE_LEAK`` is how many megabytes each run of the network leaves behind. ``FAKE_GATE`` names a file without which no
run returns. ``FAKE_LANES`` is how many runs may be under way at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fake_session import FakeSession, mean_of_channels

from watcher import cli, imagefile
from watcher.errors import SessionError
from watcher.frame import Float32
from watcher.network import Network
from watcher.session import Shape
from watcher.watch import Watch


def hang() -> None:
    threading.Event().wait()


def leave() -> None:
    """End like a native call that has its own idea of an error."""
    os._exit(3)


_heap: list[object] = []


def grow() -> None:
    """Take memory, and never stop."""
    while True:
        _heap.append(np.ones(10_000_000, np.uint8))
        threading.Event().wait(0.05)


ENDS: dict[str, Callable[[], object]] = {
    "segv": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": leave,
    "hang": hang,
    "grow": grow,
    "slow": lambda: threading.Event().wait(1.0),
}


def raising() -> object:
    raise SessionError("the runtime gave up")


def unexpected() -> object:
    raise ZeroDivisionError("nobody thought of this")


def full() -> object:
    raise MemoryError


RAISES: dict[str, Callable[[], object]] = {"raise": raising, "unexpected": unexpected, "memory": full}
ANSWERS: dict[str, Callable[[Float32], Float32]] = {
    "nan": lambda made: np.full_like(made, np.nan),
    "some nan": lambda made: np.where(np.arange(made.size).reshape(made.shape) % 7, made, np.inf).astype(np.float32),
    "shape": lambda made: np.zeros((2, *made.shape), np.float32),
    "empty": lambda made: made[:0],
}


def answer(tensor: Float32) -> Float32:
    gate = os.environ.get("FAKE_GATE")
    while gate and float(tensor.std()) and not os.path.exists(gate):  # the warm-up's plain gray passes
        threading.Event().wait(0.01)
    made = mean_of_channels(tensor)
    if os.environ.get("FAKE_LEAK"):
        _heap.append(np.ones(int(os.environ["FAKE_LEAK"]) * 1_000_000, np.uint8))
        threading.Event().wait(0.8)
    how = os.environ.get("FAKE_SESSION", "")
    if float(tensor[0, 0].mean() - tensor[0, 2].mean()) < 0.5:
        return made
    if how in ENDS or how in RAISES:
        (ENDS | RAISES)[how]()
    return ANSWERS[how](made) if how in ANSWERS else made


def decoding(real: Callable[..., Any]) -> Callable[..., Any]:
    def decode(data: bytes, **options: Any) -> Any:
        how = os.environ.get("FAKE_DECODER", "")
        if b"poison" in data and how:
            (ENDS | RAISES)[how]()
        return real(data, **options)

    return decode


def open_session(_: Network) -> FakeSession:
    how = os.environ.get("FAKE_LOADING", "")
    if how:
        (ENDS | RAISES)[how]()
    return FakeSession(Shape(16, 24), answer, int(os.environ.get("FAKE_LANES", "1")))


def install() -> None:
    """Put the trivial network and the wrapped decoder in place."""
    Network.open = open_session  # type: ignore[method-assign,assignment]
    if os.environ.get("FAKE_WATCH") == "deaf":
        setattr(Watch, "start", lambda _: None)  # noqa: B010
        setattr(Watch, "check", lambda _: None)  # noqa: B010
    imagefile.decode = decoding(imagefile.decode)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    install()
    cli.main()
