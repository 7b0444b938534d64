"""A daemon with its local service on, and plain requests to it."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from conftest import make_picture
from living import Life
from waiting import until


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """(status, headers in lower case, body) of one request; underscores in header names are hyphens."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
        line.request(method, path, body or None, {key.replace("_", "-"): value for key, value in headers.items()})
        answer = line.getresponse()
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()


@contextmanager
def served(life: Life, **api: Any) -> Iterator[int]:
    """A daemon with the service on, until the end of the block; its port."""
    port = int(api.pop("port", 0)) or free_port()
    fake = api.pop("fake", {})
    folder = api.pop("folder", None)
    life.settle(folder, api={"enabled": True, "port": port, **api})
    with life.running(**fake):
        until(lambda: life.told().state in ("running", "degraded"), what=life.log())
        until(lambda: listens(port), what=life.log())
        yield port


def photo(life: Life, name: str = "a.jpg", size: tuple[int, int] = (64, 48)) -> bytes:
    return make_picture(life.place / "sent" / name, size, "noise").read_bytes()
