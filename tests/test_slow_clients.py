"""Clients that are slow on purpose: none of them holds a thread, and each loses its connection."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until
from waitress import wasyncore

from watcher.config.settings import Api
from watcher.web.app import make_app
from watcher.web.door import Answer, Question
from watcher.web.listening import HEADER_BYTES, Bounds, Patience, Turn, listen
from watcher.web.token import Token

MAP = b"m" * 30_000_000
QUICK = Patience(grace_s=0.4, bytes_per_s=1e9)
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
AT_MOST_S = 30.0


class BigMaps:
    """Answers every picture at once with a map that fits into no buffer of the system."""

    def ask(self, _question: Question, _wanted: Callable[[], bool]) -> Answer:
        made = {"model": "m", "provider": "cpu", "raw_min": 0, "raw_max": 1, "near": "white"}
        return Answer({"made": made, "took_ms": 1}, MAP)


@contextmanager
def serving(place: Path, *, threads: int = 1, connections: int = 50, patience: Patience = QUICK) -> Iterator[Any]:
    token = Token(place)
    token.make()
    app = make_app(Api.model_validate({"enabled": True}), BigMaps(), token, live=False)
    server = listen(app, Bounds("127.0.0.1", 0, threads, connections, 1_000_000), patience)
    thread = threading.Thread(target=server.run, name="served", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.task_dispatcher.shutdown(timeout=10)
        server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map, ignore_all=True))
        thread.join(20)


def connected(server: Any, receive_bytes: int = 0) -> socket.socket:
    line = socket.socket()
    if receive_bytes:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    line.settimeout(AT_MOST_S)
    line.connect(("127.0.0.1", int(server.effective_port)))
    return line


def closed_while(line: socket.socket, act: Callable[[], object], every_s: float = 0.05) -> bool:
    """Whether the other side closes although ``act`` goes on and on."""
    for _ in range(int(AT_MOST_S / every_s)):
        try:
            act()
            if select.select([line], [], [], every_s)[0] and not line.recv(65536):
                return True
        except OSError:
            return True
    return False


def answered(server: Any) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", int(server.effective_port), timeout=AT_MOST_S)) as line:
        line.request("POST", "/predict", b"x")
        answer = line.getresponse()
        assert answer.read() == MAP
        return answer.status


@pytest.mark.parametrize(
    ("begun", "piece"),
    [(HEAD, b"X: y\r\n"), (HEAD + b"Content-Length: 100000\r\n\r\n", b"x"), (b"", b"P")],
    ids=["headers without an end", "a body byte by byte", "a request line without an end"],
)
def test_a_request_that_never_ends(tmp_path: Path, begun: bytes, piece: bytes) -> None:
    """Something is sent all the time, so it is not silence: it is closed because the request does not become whole."""
    with serving(tmp_path) as server, closing(connected(server)) as slow:
        slow.sendall(begun)
        assert answered(server) == 200, "the only thread is free"
        assert closed_while(slow, lambda: slow.sendall(piece))


def test_an_answer_that_is_not_taken(tmp_path: Path) -> None:
    """Who reads nothing of a large map holds no thread, others are answered, and then the connection is closed."""
    with serving(tmp_path) as server, closing(connected(server, 4096)) as slow:
        slow.sendall(HEAD + b"Content-Length: 1\r\n\r\nx")
        assert slow.recv(15) == b"HTTP/1.1 200 OK", "the only thread has done it"
        assert answered(server) == 200
        until(lambda: not server.active_channels)
        taken = 0
        while part := slow.recv(1 << 20):  # what the system's own buffers held
            taken += len(part)
        assert taken < len(MAP)


def test_silence(tmp_path: Path) -> None:
    """More connections than are taken, and not a word on any: they are closed, and the next one is answered."""
    with serving(tmp_path, connections=8) as server:
        silent = [connected(server) for _ in range(20)]
        assert answered(server) == 200
        for line in silent:
            assert line.recv(1) == b""
            line.close()


def test_large_headers(tmp_path: Path) -> None:
    """Headers beyond 16 kB are answered 431, before the rest of them is read."""
    with serving(tmp_path, patience=Patience()) as server, closing(connected(server)) as line:
        line.sendall(HEAD + b"X: " + b"y" * HEADER_BYTES + b"\r\n\r\n")
        assert line.recv(100).split()[1] == b"431"


def test_patience_is_for_bytes() -> None:
    """Grace, and then as long as its bytes would take at the slowest pace; the next one begins anew."""
    turn = Turn(Patience(grace_s=20, bytes_per_s=20_000))
    assert not turn.overdue(1e9)
    turn.begin(100.0)
    turn.begin(110.0)
    assert (turn.overdue(120.0), turn.overdue(120.1)) == (False, True)
    turn.moved(2_000_000)
    assert (turn.overdue(220.0), turn.overdue(220.1)) == (False, True)
    turn.end()
    turn.begin(300.0)
    assert (turn.overdue(320.0), turn.overdue(320.1)) == (False, True)
