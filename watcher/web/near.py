"""Near end of the local socket: a thread that accepts, and one for each question while it is answered."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from pathlib import Path

from watcher import durable
from watcher.clock import now_s
from watcher.web import wire
from watcher.web.door import Door, Gone, Question, Refused

log = logging.getLogger(__name__)

_LINES_MOST = 256
_SLOW_S = 30.0


class SocketServer:
    def __init__(self, state_dir: Path, door: Door, max_bytes: int) -> None:
        self._path = wire.place(state_dir)
        self._door = door
        self._max_bytes = max_bytes
        self._stopping = threading.Event()
        self._places = threading.BoundedSemaphore(_LINES_MOST)
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._accept, name="api-socket", daemon=True)
        self._lines: set[threading.Thread] = set()

    def start(self) -> None:
        """Listen. Raises ``OSError``. The socket appears with its mode set, and replaces what a dead process left."""
        durable.make_folder(self._path.parent, 0o700)
        if not wire.is_ours(self._path.parent):
            raise PermissionError(f"{self._path.parent} can be written to by others")
        hidden = self._path.with_name(f".{self._path.name}.new")
        hidden.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(hidden))
            os.chmod(hidden, 0o600)
            listener.listen(_LINES_MOST)
            os.replace(hidden, self._path)
        except OSError:
            listener.close()
            raise
        self._socket = listener
        self._thread.start()

    def stop(self, until_s: float) -> bool:
        """No further question; those in hand are waited for until then. True when all threads have ended."""
        if self._socket is None:
            return True
        self._stopping.set()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wake:
            wake.settimeout(0.5)
            wake.connect(str(self._path))
        self._thread.join(max(0.0, until_s - now_s()))
        self._socket.close()
        self._path.unlink(missing_ok=True)
        for line in list(self._lines):
            line.join(max(0.0, until_s - now_s()))
        return not any(thread.is_alive() for thread in (self._thread, *self._lines))

    def _accept(self) -> None:
        assert self._socket is not None
        while not self._stopping.is_set():
            try:
                line, _ = self._socket.accept()
            except OSError as error:
                if not self._stopping.wait(0.1):  # out of descriptors: it passes
                    log.warning("the local socket: %s", error)
                continue
            if self._stopping.is_set() or not self._places.acquire(blocking=False):
                line.close()
                continue
            thread = threading.Thread(target=self._serve, args=(line,), name="api-line", daemon=True)
            self._lines.add(thread)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads: it passes
                log.warning("the local socket: %s", error)
                self._lines.discard(thread)
                self._places.release()
                line.close()

    def _serve(self, line: socket.socket) -> None:
        try:
            with line, contextlib.suppress(OSError, Gone):
                line.settimeout(_SLOW_S)
                self._answer(line)
        finally:
            self._places.release()
            self._lines.discard(threading.current_thread())

    def _answer(self, line: socket.socket) -> None:
        try:
            head, data = wire.receive(line, self._max_bytes)
            answer = self._door.ask(
                Question(str(head.get("what")), dict(head.get("facts") or {}), data),
                lambda: not wire.hung_up(line),
            )
        except Refused as no:
            wire.send(line, {"refused": no.as_json()}, b"")
        except wire.Broken as error:
            broken = Refused(413 if "data" in str(error) else 400, "bad-message", str(error))
            wire.send(line, {"refused": broken.as_json()}, b"")
        except (Gone, OSError):
            raise
        except Exception:
            log.exception("a question over the local socket failed")
            failed = Refused(500, "internal", "the daemon failed to answer", "Its log says why.")
            wire.send(line, {"refused": failed.as_json()}, b"")
        else:
            wire.send(line, {"facts": dict(answer.facts)}, answer.data)
