"""The local service with a real daemon: the same way as files, and the four preloaded workers of the question."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
import pytest
import rooms
from conftest import PROJECT, Home, make_picture
from living import Life
from serving import ask, free_port, listens, photo, served
from waiting import until

from watcher import imagefile
from watcher.clock import now_s
from watcher.web import near, wire
from watcher.web.door import Refused
from watcher.web.near import SocketServer
from watcher.web.service import Service, open_service

JPEG = "image/jpeg"


@pytest.fixture
def life(home: Home, tmp_path: Path) -> Iterator[Life]:
    one = Life(home, tmp_path)
    yield one
    one.bury()


def test_a_sent_picture_gives_the_map_of_the_folder(life: Life) -> None:
    """The map that /predict answers has the values of the map that the folder gives for the same picture."""
    data = photo(life)
    with served(life) as port:
        status, headers, body = ask(port, "POST", "/predict?name=a.jpg", data, Content_Type=JPEG)
        (life.inbox / "a.jpg").write_bytes(data)
        life.await_done(1)
    assert (status, headers["content-type"]) == (200, "image/png"), body
    assert headers["x-depth-model"] == "starter"
    assert float(headers["x-depth-raw-min"]) < float(headers["x-depth-raw-max"])
    sent = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_UNCHANGED)
    dropped = cv2.imread(str(life.outbox / "a_depth.png"), cv2.IMREAD_UNCHANGED)
    assert sent is not None
    assert sent.dtype == np.uint16
    assert dropped is not None
    assert np.array_equal(sent, dropped)


@pytest.mark.parametrize(("own", "told"), [("shot", "frame"), ({"percentile": [2, 98]}, "percentile 2 98")])
def test_a_sent_picture_has_the_range_of_the_folder(life: Life, own: object, told: str) -> None:
    """Percentiles hold for sent pictures, too; the range of a shot cannot, and the map says why."""
    with served(life, folder={"output": {"range": own}}) as port:
        status, _, body = ask(port, "POST", "/predict?name=a_0001.jpg", photo(life))
    assert status == 200, body
    (life.place / "sent.png").write_bytes(body)
    facts = imagefile.read_facts(life.place / "sent.png")
    assert facts is not None
    assert facts["range"] == told
    assert facts.get("range_note") == ("it belongs to no shot" if own == "shot" else None)


def test_what_is_sent_leaves_nothing(life: Life) -> None:
    """A sent picture needs no inbox: no file, no row, no place in the counts of the folders."""
    with served(life) as port:
        assert ask(port, "POST", "/predict", photo(life))[0] == 200
        counts = json.loads(ask(port, "GET", "/api/status")[2])["counts"]
    assert counts == {"seen": 0, "waiting": 0, "in_flight": 0, "done": 0, "failed": 0, "ignored": 0}
    assert life.maps() == []


def test_broken_pictures_are_told_what_is_wrong(life: Life) -> None:
    """415 for what is no picture, 422 for a damaged one, and the daemon answers the next one."""
    with served(life) as port:
        assert ask(port, "POST", "/predict", b"hello")[0] == 415
        status, _, body = ask(port, "POST", "/predict", photo(life)[:900])
        assert (status, json.loads(body)["error"]["code"]) == (422, "truncated")
        assert ask(port, "POST", "/predict", b"x" * 1_200_000)[0] == 415
        assert ask(port, "POST", "/predict", photo(life))[0] == 200
    assert life.told().counts.failed == 0


def test_too_large_is_refused_before_it_is_read(life: Life) -> None:
    """A body beyond api.max_mb is answered 413."""
    with served(life, max_mb=1) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1300000\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_the_request_of_the_question(life: Life) -> None:
    """An empty POST makes map_file of frame_file, and needs both settings; no other file can be named."""
    frame, made = life.place / "tmp" / "frame.jpg", life.place / "tmp" / "depth.jpg"
    make_picture(frame, (64, 48))
    with served(life, frame_file=str(frame), map_file=str(made)) as port:
        assert ask(port, "POST", "/predict")[0] == 200
        depth = cv2.imread(str(made), cv2.IMREAD_UNCHANGED)
        assert depth is not None
        assert depth.shape == (48, 64)
        frame.unlink()
        assert ask(port, "POST", "/predict")[0] == 404
    with served(life) as port:
        assert ask(port, "POST", "/predict")[0] == 400


def test_off_means_off(life: Life) -> None:
    """With api.enabled false nothing listens, no socket appears, and flask is not even imported."""
    life.settle()
    with life.running():
        assert not (life.state / "api.sock").exists()
        assert not (life.state / "api-token").exists()
    script = (
        "import sys; from watcher import daemon, cli, web; from watcher.cli import working, looking;"
        " print([m for m in ('flask', 'waitress', 'werkzeug') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_secrets_are_for_the_user_alone(life: Life) -> None:
    """Token and socket have mode 0600; the socket is gone after a stop, and a stale one does not stand in the way."""
    with served(life):
        for name in ("api.sock", "api-token"):
            assert stat.S_IMODE(os.stat(life.state / name).st_mode) == 0o600
    assert not (life.state / "api.sock").exists()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(life.state / "api.sock"))
    with served(life) as port:
        assert ask(port, "GET", "/healthz")[0] == 200


def test_a_port_that_is_taken(life: Life) -> None:
    """Another program on the port: the folders go on, and the status says what stands in the way."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with served(life, port=other.getsockname()[1]):
            until(lambda: "cannot listen" in life.told().reason)
            make_picture(life.inbox / "a.jpg")
            life.await_done(1)


class Senders:
    """Whoever sends pictures and does not wait for the answers; all of them hang up at the end of the block."""

    def __init__(self, port: int, data: bytes) -> None:
        self._port, self._lines = port, list[socket.socket]()
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
        self._request = head.encode() + data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines:
            line.close()

    def send(self, count: int) -> list[socket.socket]:
        for _ in range(count):
            self._lines.append(socket.create_connection(("127.0.0.1", self._port), timeout=60))
            self._lines[-1].sendall(self._request)
        return self._lines[-count:]

    def send_one_more(self) -> tuple[int, int] | None:
        """(status, Retry-After) where it is refused; None where it is taken: then it waits with the others."""
        line = self.send(1)[0]
        if not select.select([line], [], [], 0.4)[0]:
            return None
        with closing(http.client.HTTPResponse(line)) as answer:
            answer.begin()
            return answer.status, int(answer.headers["Retry-After"])


def measured(port: int) -> dict[str, float]:
    lines = ask(port, "GET", "/metrics")[2].decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_full_slow_and_gone(life: Life) -> None:
    """A full backlog is 429, a late map 503, both with Retry-After; who goes away frees the place; then all is well."""
    gate = life.place / "gate"
    data = photo(life)
    gate.touch()
    with served(life, backlog=2, timeout_s=6, fake={"session": "hang", "gate": str(gate)}) as port:
        gate.unlink()
        with Senders(port, data) as senders:
            # the stages below take some of what waits; nothing leaves them, so that in the end all places are taken
            refused = until(senders.send_one_more, 60)
            assert refused is not None
            assert (refused[0], refused[1] >= 1) == (429, True)
        until(lambda: measured(port)["depth_watcher_calls_waiting"] == 0)
        status, headers, body = ask(port, "POST", "/predict", data)
        assert (status, json.loads(body)["error"]["code"]) == (503, "timeout")
        assert int(headers["retry-after"]) >= 1
        gate.touch()
        assert ask(port, "POST", "/predict", data)[0] == 200
        found = measured(port)
    assert found['depth_watcher_calls_total{outcome="busy"}'] >= 1
    assert found['depth_watcher_calls_total{outcome="gone"}'] >= 2
    assert found['depth_watcher_calls_total{outcome="done"}'] == 1


def test_files_and_calls_take_turns(life: Life) -> None:
    """With a folder full of files, sent pictures are answered long before the folder is done, and files go on too."""
    with served(life, fake={"session": "hang"}) as port:
        for number in range(200):
            make_picture(life.inbox / f"{number}.png", (400, 300))
        until(lambda: life.told().counts.done >= 1)
        with Senders(port, photo(life)) as senders:
            assert all(line.recv(15) == b"HTTP/1.1 200 OK" for line in senders.send(10))
            assert life.told().counts.done < 200
        life.await_done(200)


def test_pause_and_resume(life: Life) -> None:
    """A pause leaves files in the inbox and answers sent pictures; a resume does what waited."""
    with served(life) as port:
        assert ask(port, "POST", "/api/pause")[0] == 200
        make_picture(life.inbox / "a.png")
        until(lambda: life.told().counts.waiting == 1)
        assert "paused" in life.told().reason
        assert ask(port, "POST", "/predict", photo(life))[0] == 200
        assert life.maps() == []
        assert ask(port, "POST", "/api/resume")[0] == 200
        life.await_done(1)


def test_retry_brings_back_by_exact_name_only(life: Life) -> None:
    """Retry takes the name of a failed picture, no pattern and no path."""
    with served(life) as port:
        (life.inbox / "bad.jpg").write_bytes(b"no picture")
        until(lambda: life.told().counts.failed == 1 and (life.failed / "bad.jpg.error.json").exists())
        for name in ("*", "../failed/bad.jpg", str(life.failed / "bad.jpg"), "bad"):
            status, _, _ = ask(
                port, "POST", "/api/retry", json.dumps({"name": name}).encode(), Content_Type="application/json"
            )
            assert status == 404
        (life.failed / "bad.jpg").write_bytes(photo(life))
        body = json.dumps({"name": "bad.jpg"}).encode()
        assert ask(port, "POST", "/api/retry", body, Content_Type="application/json")[0] == 200
        life.await_done(1)
        page = json.loads(ask(port, "GET", "/api/page")[2])
        assert [entry["name"] for entry in page["maps"]] == ["bad.jpg"]
        row = page["maps"][0]["id"]
        for side in ("map", "picture"):
            status, headers, small = ask(port, "GET", f"/api/thumbnail/{row}/{side}")
            assert (status, headers["content-type"], small[:2]) == (200, JPEG, b"\xff\xd8")
        assert ask(port, "GET", f"/api/thumbnail/{row + 1}/map")[0] == 404


def test_events_are_pushed(life: Life) -> None:
    """The page's events tell a change within seconds, and keep nobody from stopping."""
    with served(life) as port, closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as line:
        line.request("GET", "/api/events")
        answer = line.getresponse()
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        assert b"No maps yet" in answer.readline()
        make_picture(life.inbox / "a.png")
        until(lambda: b"a.png" in answer.readline())


# --- the question: gunicorn, four workers, preload -------------------------------------------------------------------


@contextmanager
def gunicorn(life: Life, workers: int = 4) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    port = free_port()
    app = f"watcher.web:create_app('{life.file}')"
    words = ["-m", "gunicorn", app, "--preload", "--workers", str(workers), "--bind", f"127.0.0.1:{port}"]
    with (life.place / "gunicorn.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *words, "--no-control-socket"],
            env=life.home.env,
            stdout=log,
            stderr=log,
            cwd=PROJECT,
            text=True,
        )
    try:
        until(lambda: listens(port), 30, "gunicorn")
        yield port, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@pytest.mark.timeout(400)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the workers in /proc")
def test_four_preloaded_workers_answer_a_thousand_requests(life: Life) -> None:
    """1 000 requests, 32 at a time, mixed sizes, 5 % broken: each answered rightly, no worker lost, one session."""
    sizes = [(64, 48), (200, 150), (320, 240), (31, 77)]
    good = [photo(life, f"{w}x{h}.jpg", (w, h)) for w, h in sizes]
    broken = [b"not a picture", good[2][: len(good[2]) // 2]]

    with served(life, backlog=64), gunicorn(life) as (port, process):
        until(lambda: len(children(process.pid)) == 4)
        before = children(process.pid)

        def one(number: int) -> tuple[int, bool]:
            if number % 20 == 0:
                status, _, _ = ask(port, "POST", "/predict", broken[number // 20 % 2])
                return status, status in (415, 422)
            which = number % len(sizes)
            status, _, body = ask(port, "POST", "/predict", good[which])
            made = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_UNCHANGED) if status == 200 else None
            return status, made is not None and made.shape == sizes[which][::-1]

        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(one, range(1000)))
        assert all(right for _, right in answers), Counter(answers)
        assert Counter(status for status, _ in answers) == {200: 950, 415: 25, 422: 25}
        assert children(process.pid) == before
        metrics = ask(port, "GET", "/metrics")[2].decode()
        assert 'depth_watcher_calls_total{outcome="done"} 950' in metrics
    assert life.log().count("loaded in") == 1
    threads = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("engine") for name in threads)


def test_without_the_daemon_workers_say_so(life: Life) -> None:
    """A front without a daemon answers 503 and is well again when the daemon is."""
    life.settle(api={"enabled": True, "port": free_port()})
    with gunicorn(life, 1) as (port, _):
        status, _, body = ask(port, "GET", "/healthz")
        assert (status, json.loads(body)["state"]) == (503, "stopped")
        assert ask(port, "POST", "/predict", photo(life))[0] == 503
        with served(life):
            until(lambda: ask(port, "GET", "/healthz")[0] == 200)
            assert ask(port, "POST", "/predict", photo(life))[0] == 200


def test_the_description_is_true(life: Life) -> None:
    """Schemathesis finds no request to any described route that gets an undescribed answer, or breaks the server."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    with served(life) as port:
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("schemathesis")), "run"),
                *(f"http://127.0.0.1:{port}/api/openapi.json", "--max-examples", "10", "--checks", checks),
                *("--exclude-path", "/api/events"),  # it does not end; test_events_are_pushed reads it
            ],
            capture_output=True,
            text=True,
            env=life.home.env,
            cwd=life.place,
            timeout=100,
            check=False,
        )
        assert ask(port, "POST", "/predict", photo(life))[0] == 200
    assert done.returncode == 0, done.stdout[-4000:]


# --- names, pictures and the limits of the system ---------------------------------------------------------------------


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
                with suppress(BrokenPipeError):  # it may refuse before it has read everything
                    wire.send(line, {"what": "x"}, b"")
                assert wire.receive(line, 10_000)[0]["refused"]["status"] == 404
            else:
                assert line.recv(1) == b""
    assert server.stop(now_s() + 20)


def test_a_local_socket_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as what it is, and whoever comes by the port is served all the same."""

    def refuse(_: SocketServer) -> None:
        raise PermissionError(13, "no", str(tmp_path))

    monkeypatch.setattr(SocketServer, "start", refuse)
    (tmp_path / "state").mkdir(mode=0o700)
    port, told = free_port(), list[str | None]()
    chosen = rooms.settings(tmp_path, api={"enabled": True, "port": port})
    service = open_service(chosen, None, dict, lambda _, trouble: told.append(trouble))  # type: ignore[arg-type]
    assert service is not None
    assert len(told) == 1
    assert "local socket" in str(told[0])
    assert ask(port, "GET", "/api/openapi.json")[0] == 200
    assert service.stop(now_s() + 20)


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
