"""Fetching models from servers that are slow, broken, mistaken or dishonest: right bytes or a clear error."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import http.server
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from watcher import durable
from watcher.catalog import Spec, fetch, pull
from watcher.catalog import spec as specs
from watcher.catalog.find import judge
from watcher.errors import AnotherInstance, CannotCreate, ModelError, Unavailable, UsageError, WatcherError

CONTENT = np.random.default_rng(5).bytes(300_000)
OTHER = np.random.default_rng(6).bytes(300_000)
CUT = 100_000


@dataclass
class Server:
    """A file server whose manners a test chooses; ``asked`` keeps the headers of each request."""

    manner: Callable[[Handler, Server], None]
    address: str = ""
    content: bytes = CONTENT
    etag: str = '"one"'
    asked: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Any
    timeout = 20

    def do_GET(self) -> None:
        told: Server = self.server.told
        told.asked.append(self.headers)
        told.paths.append(self.path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client has heard enough
            told.manner(self, told)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def asked_from(self) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(match[1]) if match else 0

    def head(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def part(self, start: int, told: Server, body: bytes | None = None) -> None:
        span = f"bytes {start}-{len(told.content) - 1}/{len(told.content)}"
        rest = told.content[start:]
        self.head(206, Content_Length=len(rest), Content_Range=span, ETag=told.etag)
        self.wfile.write(rest if body is None else body)


def honest(handler: Handler, told: Server) -> None:
    """Ranges where asked for, and only while the content is the same."""
    start = handler.asked_from()
    if start >= len(told.content):
        handler.head(416, Content_Range=f"bytes */{len(told.content)}", Content_Length=0)
    elif start and handler.headers.get("If-Range", told.etag) == told.etag:
        handler.part(start, told)
    else:
        handler.head(200, Content_Length=len(told.content), ETag=told.etag)
        handler.wfile.write(told.content)


def cut_short(handler: Handler, told: Server) -> None:
    """Promises everything that is left and closes after CUT bytes of it."""
    start = handler.asked_from()
    if start:
        handler.part(start, told, told.content[start : start + CUT])
    else:
        handler.head(200, Content_Length=len(told.content), ETag=told.etag)
        handler.wfile.write(told.content[:CUT])


def cut_at_once(handler: Handler, told: Server) -> None:
    """Promises everything and gives nothing after the first CUT bytes."""
    if handler.asked_from():
        handler.part(handler.asked_from(), told, b"")
    else:
        cut_short(handler, told)


def stalls(handler: Handler, told: Server) -> None:
    """Sends the first CUT bytes, then nothing more, and keeps the line open."""
    cut_at_once(handler, told)
    handler.wfile.flush()
    told.release.wait(20)


def silent(handler: Handler, told: Server) -> None:
    told.release.wait(20)


def no_ranges(handler: Handler, told: Server) -> None:
    handler.head(200, Content_Length=len(told.content))
    handler.wfile.write(told.content)


def wrong_start(handler: Handler, told: Server) -> None:
    """Answers with another range than was asked for."""
    if handler.asked_from():
        handler.part(handler.asked_from() + 10, told)
    else:
        honest(handler, told)


def right_label_wrong_bytes(handler: Handler, told: Server) -> None:
    """Labels the range rightly and sends the beginning of the file under it."""
    start = handler.asked_from()
    if start:
        handler.part(start, told, told.content[: len(told.content) - start])
    else:
        honest(handler, told)


def another_total(handler: Handler, told: Server) -> None:
    start = handler.asked_from()
    handler.head(206, Content_Length=10, Content_Range=f"bytes {start}-{start + 9}/{start + 10}")
    handler.wfile.write(bytes(10))


def always_partial(handler: Handler, told: Server) -> None:
    """Sends the second half although nobody asked for a range."""
    handler.part(len(told.content) // 2, told)


def refuses_ranges(handler: Handler, told: Server) -> None:
    if handler.asked_from():
        handler.head(416, Content_Length=0)
    else:
        honest(handler, told)


def endless(handler: Handler, told: Server) -> None:
    """No length, and more than the file has."""
    handler.head(200)
    handler.wfile.write(told.content + b"more")


def no_length(handler: Handler, told: Server) -> None:
    handler.head(200)
    handler.wfile.write(told.content)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DEPTH_WATCHER_MIRROR", raising=False)
    monkeypatch.setattr(fetch, "STALL_S", 5.0)
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = False  # server_close waits for every handler
    told = Server(honest, f"http://127.0.0.1:{listening.server_address[1]}")
    listening.told = told  # type: ignore[attr-defined]
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield told
    told.release.set()
    listening.shutdown()
    listening.server_close()
    thread.join()


@pytest.fixture
def spec(server: Server) -> Spec:
    return Spec(
        name="thing",
        file="thing.onnx",
        url=f"{server.address}/v1/upstream.onnx",
        bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        licence="MIT",
        commercial=True,
    )


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def begin(spec: Spec, server: Server, folder: Path, manner: Callable[[Handler, Server], None] = cut_at_once) -> None:
    """Leave the first CUT bytes behind, as an interrupted pull does."""
    server.manner = manner
    with pytest.raises(Unavailable):
        pull(spec, folder)
    assert visible(folder) == []
    assert (folder / ".thing.onnx.part").read_bytes() == CONTENT[:CUT]
    server.asked.clear()


def test_whole_and_verified(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A pull places the file, reports rising progress up to the end, and leaves nothing else to see."""
    seen: list[tuple[int, int | None]] = []
    path = pull(spec, tmp_path / "new" / "models", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert visible(path.parent) == ["thing.onnx"]
    assert not list(path.parent.glob(".*part*"))
    assert seen == sorted(seen)
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_what_is_there_is_not_fetched(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A verified file is pulled without a request; a damaged one is fetched again."""
    path = pull(spec, tmp_path)
    pull(spec, tmp_path)
    assert len(server.asked) == 1
    path.write_bytes(OTHER)
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 2


def test_a_cut_transfer_goes_on_by_itself(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A connection that closes too early is continued from its last byte, against the same content only."""
    server.manner = cut_short
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert [headers.get("Range") for headers in server.asked] == [None, "bytes=100000-", "bytes=200000-"]
    assert [headers.get("If-Range") for headers in server.asked] == [None, '"one"', '"one"']


@pytest.mark.parametrize(("manner", "says"), [(cut_at_once, "closed the connection"), (stalls, "has sent nothing for")])
def test_interrupted_pulls_go_on_later(
    spec: Spec,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    manner: Callable[[Handler, Server], None],
    says: str,
) -> None:
    """Truncation and stalling end with exit 69 and the way on; the next pull asks for the rest and no more."""
    monkeypatch.setattr(fetch, "STALL_S", 0.3)
    server.manner = manner
    with pytest.raises(Unavailable, match=says) as caught:
        pull(spec, tmp_path)
    assert caught.value.exit_code == 69
    assert "goes on where it ended" in caught.value.remedy
    assert visible(tmp_path) == []
    server.release.set()
    server.manner = honest
    server.asked.clear()
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert [headers.get("Range") for headers in server.asked] == [f"bytes={CUT}-"]


def test_a_silent_server_is_given_up(
    spec: Spec, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that accepts and never answers is unavailable, not waited for."""
    monkeypatch.setattr(fetch, "STALL_S", 0.3)
    server.manner = silent
    with pytest.raises(Unavailable, match="does not answer within"):
        pull(spec, tmp_path)
    assert visible(tmp_path) == []


def test_stopping_by_hand_keeps_what_came(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Ctrl-C in a download loses nothing: the next pull goes on."""

    def stop(done: int, total: int | None) -> None:
        if done > CUT:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(spec, tmp_path, progress=stop)
    assert visible(tmp_path) == []
    have = (tmp_path / ".thing.onnx.part").stat().st_size
    assert have > CUT
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert server.asked[-1].get("Range") == f"bytes={have}-"


@pytest.mark.parametrize("manner", [no_ranges, wrong_start, right_label_wrong_bytes, refuses_ranges])
def test_lies_about_ranges_cost_time_only(
    spec: Spec, server: Server, tmp_path: Path, manner: Callable[[Handler, Server], None]
) -> None:
    """A server that ignores, shifts, mislabels or refuses ranges makes the pull start over, and end right."""
    begin(spec, server, tmp_path)
    server.manner = manner
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert server.asked[0].get("Range") == f"bytes={CUT}-"


@pytest.mark.parametrize("manner", [another_total, always_partial])
def test_servers_that_only_lie_are_refused(
    spec: Spec, server: Server, tmp_path: Path, manner: Callable[[Handler, Server], None]
) -> None:
    """Where the range's total is another file's, or ranges come unasked, the pull ends and nothing is placed."""
    begin(spec, server, tmp_path)
    server.manner = manner
    with pytest.raises(ModelError) as caught:
        pull(spec, tmp_path)
    assert caught.value.remedy
    assert visible(tmp_path) == []


def test_new_content_is_fetched_from_its_start(spec: Spec, server: Server, tmp_path: Path) -> None:
    """When the server's file has changed since the first part, the parts are not glued together."""
    begin(spec, server, tmp_path)
    server.manner, server.content, server.etag = honest, OTHER, '"two"'
    fresh = replace(spec, sha256=hashlib.sha256(OTHER).hexdigest())
    assert pull(fresh, tmp_path).read_bytes() == OTHER


def test_a_part_of_unknown_origin_is_not_continued(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Without a hash to check the whole and a validator to check the part, the part is worth nothing."""
    (tmp_path / ".thing.onnx.part").write_bytes(OTHER[:CUT])
    assert pull(replace(spec, sha256=""), tmp_path).read_bytes() == CONTENT
    assert server.asked[0].get("Range") is None


def test_a_complete_part_needs_no_server(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A pull that died between the last byte and the placing is finished from what is there."""
    (tmp_path / ".thing.onnx.part").write_bytes(CONTENT)
    assert pull(spec, tmp_path).read_bytes() == CONTENT
    assert server.asked == []


@pytest.mark.parametrize("rest", [OTHER, CONTENT + b"more"], ids=["wrong", "too-long"])
def test_a_bad_part_is_thrown_away(spec: Spec, server: Server, tmp_path: Path, rest: bytes) -> None:
    """A part that cannot be the beginning of the file does not stand in the way."""
    (tmp_path / ".thing.onnx.part").write_bytes(rest)
    assert pull(spec, tmp_path).read_bytes() == CONTENT


def test_wrong_bytes_are_not_placed(spec: Spec, server: Server, tmp_path: Path) -> None:
    """The right number of wrong bytes is refused by hash, and nothing is kept."""
    server.content = OTHER
    with pytest.raises(ModelError, match="SHA-256") as caught:
        pull(spec, tmp_path)
    assert spec.sha256 in str(caught.value)
    assert visible(tmp_path) == []
    assert not list(tmp_path.glob("*part*"))


def test_another_size_is_refused_at_once(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A file of another size is not downloaded at all."""
    server.content = CONTENT[:-1]
    seen: list[int] = []
    with pytest.raises(ModelError, match="299999 bytes"):
        pull(spec, tmp_path, progress=lambda done, total: seen.append(done))
    assert seen == []
    assert visible(tmp_path) == []


def test_a_server_without_length(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A server that does not say how long the file is may be right, and is cut off when it is not."""
    server.manner = no_length
    assert pull(spec, tmp_path / "a").read_bytes() == CONTENT
    server.manner = endless
    with pytest.raises(ModelError, match="more than the 300000 bytes"):
        pull(spec, tmp_path / "b")
    assert visible(tmp_path / "b") == []


@pytest.mark.parametrize("status", [401, 403, 404, 407, 429, 500, 503])
def test_refusals_are_explained(spec: Spec, server: Server, tmp_path: Path, status: int) -> None:
    """An HTTP error is exit 69 with its number and something to do."""
    server.manner = lambda handler, told: handler.head(status, Content_Length=0)
    with pytest.raises(Unavailable, match=str(status)) as caught:
        pull(spec, tmp_path)
    assert caught.value.exit_code == 69
    assert caught.value.remedy
    assert visible(tmp_path) == []


def test_offline(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Without a server there is exit 69, the reason, and the three ways out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        gone = replace(spec, url=f"http://127.0.0.1:{taken.getsockname()[1]}/x.onnx")
        with pytest.raises(Unavailable, match="cannot be reached") as caught:
            pull(gone, tmp_path)
    assert caught.value.exit_code == 69
    assert all(word in caught.value.remedy for word in ("https_proxy", "mirror", "thing.onnx"))


def test_a_mirror_serves_the_catalogues_names(
    spec: Spec, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror is a base address, given by argument or environment; the argument wins."""
    gone = replace(spec, url="http://127.0.0.1:1/upstream.onnx")
    pull(gone, tmp_path / "a", mirror=f"{server.address}/models/")
    monkeypatch.setenv("DEPTH_WATCHER_MIRROR", f"{server.address}/env")
    pull(gone, tmp_path / "b")
    pull(gone, tmp_path / "c", mirror=f"{server.address}/argument")
    assert server.paths == ["/models/thing.onnx", "/env/thing.onnx", "/argument/thing.onnx"]


def test_a_proxy_of_the_environment_is_used(
    spec: Spec, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """http_proxy is where the request goes, with the whole address in it."""
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    far = replace(spec, url="http://models.invalid/x.onnx")
    assert pull(far, tmp_path).read_bytes() == CONTENT
    assert server.paths == ["http://models.invalid/x.onnx"]


@pytest.mark.parametrize("address", ["file:///etc/hosts", "ftp://x/y", "models"])
def test_mirrors_are_web_addresses(spec: Spec, tmp_path: Path, address: str) -> None:
    """Nothing but http and https is opened."""
    with pytest.raises(UsageError, match="not a web address"):
        pull(spec, tmp_path, mirror=address)


def test_noncommercial_weights_need_a_word(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Weights that may not be used commercially are not fetched unless that was accepted."""
    bound = replace(spec, licence="CC-BY-NC-4.0", commercial=False)
    with pytest.raises(UsageError, match=r"CC-BY-NC-4\.0") as caught:
        pull(bound, tmp_path)
    assert "--accept-non-commercial" in caught.value.remedy
    assert server.asked == []
    assert pull(bound, tmp_path, accept_noncommercial=True).is_file()


def test_an_unknown_hash_is_kept_from_the_first_pull(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Where no hash is published, the first pull records one and every later look holds the file to it."""
    unknown = replace(spec, sha256="")
    path = pull(unknown, tmp_path)
    record = (tmp_path / "thing.onnx.sha256").read_text()
    assert record == f"{spec.sha256}  thing.onnx\n"
    verdict = judge(unknown, path)
    assert verdict.state == "ok"
    assert "first pull" in verdict.detail
    path.write_bytes(OTHER)
    assert judge(unknown, path).state == "damaged"
    server.content = OTHER
    with pytest.raises(ModelError, match="SHA-256"):
        pull(unknown, tmp_path)


def test_one_pull_at_a_time(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Two pulls of one model do not write into one part."""
    lock = durable.Lock(tmp_path / ".thing.onnx.lock")
    assert lock.take("someone")
    with pytest.raises(AnotherInstance):
        pull(spec, tmp_path)
    lock.give_back()
    assert pull(spec, tmp_path).is_file()


def test_no_room_is_said_before(spec: Spec, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room is found before the first byte is asked for."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(CannotCreate, match="free in"):
        pull(spec, tmp_path)
    assert server.asked == []


def test_a_folder_that_cannot_be(spec: Spec, server: Server, tmp_path: Path) -> None:
    """A models folder that cannot be made is exit 73 and names the folder."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CannotCreate, match="thing") as caught:
        pull(spec, tmp_path / "file" / "models")
    assert caught.value.exit_code == 73


def test_the_starter_needs_no_pull(tmp_path: Path) -> None:
    """The embedded network is there without a network."""
    assert pull("starter", tmp_path) == specs.embedded_dir() / "starter.onnx"


def test_every_failure_speaks(spec: Spec, server: Server, tmp_path: Path) -> None:
    """Whatever goes wrong is an error of the tree with a remedy; names of classes do not leak."""
    for status in (http.client.BAD_GATEWAY, http.client.FORBIDDEN):
        server.manner = lambda handler, told, status=status: handler.head(status, Content_Length=0)  # type: ignore[misc]
        with pytest.raises(WatcherError) as caught:
            pull(spec, tmp_path)
        assert caught.value.remedy.endswith(".")
