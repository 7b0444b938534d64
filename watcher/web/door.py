"""Door: what a front asks of the daemon, in values that fit through a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from watcher.errors import Blame, ExitCode, FrameError, NotAPicture, TooLarge, Unsupported, WatcherError, blame_of


@dataclass(frozen=True, slots=True)
class Question:
    """``what`` is one of predict, seed, status, page, metrics, retry, pause, thumbnail; ``facts`` are JSON values."""

    what: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    facts: Mapping[str, Any] = field(default_factory=dict)
    data: bytes = b""


class Refused(WatcherError):
    """The answer is no: ``status`` is the HTTP status, ``code`` is stable, ``after_s`` when to ask again (0: never)."""

    exit_code = ExitCode.UNAVAILABLE
    blame = Blame.USAGE

    def __init__(self, status: int, code: str, what: str, remedy: str = "", *, after_s: int = 0) -> None:
        super().__init__(what, remedy)
        self.status = status
        self.code = code
        self.after_s = after_s

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "code": self.code,
            "what": self.what,
            "remedy": self.remedy,
            "after_s": self.after_s,
        }


class Gone(Exception):
    """Whoever asked has gone; nobody is left to be answered."""


class Door(Protocol):
    def ask(self, question: Question, wanted: Callable[[], bool]) -> Answer:
        """Waits for the answer. Raises ``Refused``, and ``Gone`` once ``wanted()`` is False."""


def refusal_of(error: Exception) -> Refused:
    """How an error that a picture met is told over HTTP."""
    if isinstance(error, Refused):
        return error
    what, remedy = (error.what, error.remedy) if isinstance(error, WatcherError) else (type(error).__name__, "")
    if isinstance(error, TooLarge):
        return Refused(413, error.code, what, remedy)
    if isinstance(error, NotAPicture | Unsupported):
        return Refused(415, error.code, what, remedy)
    if isinstance(error, FrameError):
        return Refused(422, error.code, what, remedy)
    if blame_of(error) is Blame.FRAME:
        return Refused(422, "unreadable", f"the picture could not be processed: {what}")
    return Refused(503, "not-now", what, remedy, after_s=5)
