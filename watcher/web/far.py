"""Far door: the way to the daemon from another process, by its local socket. Safe to make before a fork."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

from watcher.web import wire
from watcher.web.door import Answer, Gone, Question, Refused

_CONNECT_S = 5.0
_ANSWER_MOST = 4 << 30


class FarDoor:
    """Holds nothing but a path: each question is a connection of its own."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir

    def ask(self, question: Question, wanted: Callable[[], bool]) -> Answer:
        path = wire.place(self._state_dir)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(_CONNECT_S)
            try:
                if not wire.is_ours(path.parent):
                    raise FileNotFoundError(path)
                line.connect(str(path))
            except OSError:
                raise Refused(
                    503, "no-daemon", "the daemon does not run", "Start it: depth-watcher run.", after_s=5
                ) from None
            line.settimeout(60.0)
            try:
                with contextlib.suppress(BrokenPipeError):  # it may refuse before it has read everything
                    wire.send(line, {"what": question.what, "facts": dict(question.facts)}, question.data)
                while not wire.has_something(line, wire.LOOK_S):
                    if not wanted():
                        raise Gone
                head, data = wire.receive(line, _ANSWER_MOST)
            except OSError:
                raise Refused(503, "daemon-ended", "the daemon ended meanwhile", "Send it again.", after_s=5) from None
        if "refused" in head:
            no = head["refused"]
            raise Refused(no["status"], no["code"], no["what"], no["remedy"], after_s=no["after_s"])
        return Answer(head["facts"], data)
