"""The album of the status page: the picture beside a map is the one that it is of, and every name can be shown."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import rooms
from conftest import Home, make_picture
from living import Life
from serving import ask, free_port, served
from waiting import until

from watcher.clock import now_s
from watcher.web import near, wire
from watcher.web.door import Refused
from watcher.web.near import SocketServer
from watcher.web.service import Service


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    one = Life(home, tmp_path)
    yield one
    one.bury()


def test_the_picture_is_the_one_that_the_map_is_of(life: Life) -> None:
    """New content under an old name was put away beside the old one; the page shows the new one."""
    wide, high = life.place / "wide.png", life.place / "high.png"
    make_picture(wide, (300, 100))
    make_picture(high, (100, 300))
    with served(life) as port:
        for count, picture in enumerate((wide, high), 1):
            (life.inbox / "a.png").write_bytes(picture.read_bytes())
            life.await_done(count)
            until(lambda: not (life.inbox / "a.png").exists())
        number = json.loads(ask(port, "GET", "/api/page")[2])["maps"][0]["id"]
        status, _, small = ask(port, "GET", f"/api/thumbnail/{number}/picture")
    assert status == 200
    shown = cv2.imdecode(np.frombuffer(small, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None
    assert shown.shape[0] > shown.shape[1]


def test_a_name_that_is_no_text(life: Life) -> None:
    """A file name that is not UTF-8 is shown as well as it can be, and its failure can be tried again."""
    name = os.fsdecode(b"gr\xfc\xdfe.png")
    (life.inbox / name).write_bytes(b"no picture")
    with served(life) as port:
        until(lambda: life.told().counts.failed == 1)
        status, _, body = ask(port, "GET", "/")
        assert status == 200
        assert "gr\ufffd\ufffde.png" in body.decode()


def test_no_more_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question for which there is no thread is turned away; the next one is answered, and the stop is clean."""

    class Door:
        def ask(self, *_: object) -> Any:
            raise Refused(404, "unknown", "nothing here")

    server = SocketServer(tmp_path, Door(), 1000)
    real = near.threading.Thread.start  # type: ignore[attr-defined]
    refused: list[str] = []

    def start(thread: Any) -> None:
        if thread.name == "api-line" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr("watcher.web.near.threading.Thread.start", start)
    server.start()
    for answered in (False, True):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(20)
            line.connect(str(wire.place(tmp_path)))
            if answered:
                with contextlib.suppress(BrokenPipeError):  # it may refuse before it has read everything
                    wire.send(line, {"what": "x"}, b"")
                assert wire.receive(line, 10_000)[0]["refused"]["status"] == 404
            else:
                assert line.recv(1) == b""
    assert server.stop(now_s() + 20)


def test_a_stop_while_the_trigger_is_pulled(tmp_path: Path) -> None:
    """The loop may end between the word to end and the pull that goes with it; the pull still meets an open pipe."""
    (tmp_path / "state").mkdir(mode=0o700)
    chosen = rooms.settings(tmp_path, api={"enabled": True, "port": free_port()})
    service = Service(chosen, None, dict)  # type: ignore[arg-type]
    service.start()
    trigger, pull = service._server.trigger, service._server.trigger._physical_pull

    def late() -> None:
        pull()
        service._thread.join(20)
        pull()

    trigger._physical_pull = late
    assert service.stop(now_s() + 20)
