"""Listening: waitress, and how long it is patient with a connection.

waitress closes a connection on which nothing moves. That leaves those who send, or take, a byte now and then. So every
request has to arrive, and every answer has to be taken, within ``grace_s`` plus what it would take at a slow pace; and
an answer that is not taken waits in a buffer (beyond a megabyte in a temporary file), never in one of the threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import create_server

from watcher.clock import now_s

HEADER_BYTES = 16_384
_NEVER = 1 << 50  # bytes that wait for a slow reader before a thread would have to wait with them


@dataclass(frozen=True, slots=True)
class Patience:
    """``grace_s``: for a request or an answer, besides its bytes at ``bytes_per_s``; and for one that says nothing."""

    grace_s: float = 20.0
    bytes_per_s: float = 20_000.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """``host`` and ``port`` to listen on, and the most threads, connections and bytes of a body."""

    host: str
    port: int
    threads: int
    connections: int
    body_bytes: int


class Turn:
    """One request on its way in, or one answer on its way out."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._began_s: float | None = None
        self._bytes = 0

    def begin(self, now: float) -> None:
        if self._began_s is None:
            self._began_s, self._bytes = now, 0

    def moved(self, count: int) -> None:
        self._bytes += count

    def end(self) -> None:
        self._began_s = None

    def overdue(self, now: float) -> bool:
        if self._began_s is None:
            return False
        return now - self._began_s > self._patience.grace_s + self._bytes / self._patience.bytes_per_s


class Channel(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that has to get on. Asked by waitress' loop every few seconds whether it is ``readable``."""

    patience = Patience()

    def __init__(self, *given: Any, **named: Any) -> None:
        self._coming, self._going = Turn(self.patience), Turn(self.patience)
        self._cut = False
        super().__init__(*given, **named)

    def received(self, data: bytes) -> bool:
        self._coming.begin(now_s())
        self._coming.moved(len(data))
        found = bool(super().received(data))
        if self.request is None:
            self._coming.end()
        return found

    def send(self, data: bytes, do_close: bool = True) -> int:
        sent = int(super().send(data, do_close=do_close))
        self._going.moved(sent)
        return sent

    def readable(self) -> bool:
        """Asked before ``writable``. Closing at once, since a socket that nobody reads never becomes writable."""
        now = now_s()
        if self.total_outbufs_len:
            self._going.begin(now)
        else:
            self._going.end()
        if self._going.overdue(now) or (not self.requests and self._coming.overdue(now)):
            self._cut = True
            self.handle_close()
        return not self._cut and bool(super().readable())

    def writable(self) -> bool:
        return not self._cut and bool(super().writable())


def listen(app: Any, bounds: Bounds, patience: Patience = Patience()) -> Any:
    """waitress' server for ``app``, bound and not yet running. Raises ``OSError``."""
    quiet_s = max(1, math.ceil(patience.grace_s))
    server = create_server(
        app,
        map={},
        host=bounds.host,
        port=bounds.port,
        threads=bounds.threads,
        connection_limit=bounds.connections,
        channel_timeout=quiet_s,
        cleanup_interval=max(1, quiet_s // 4),
        asyncore_use_poll=True,  # select() knows no descriptor beyond 1023
        asyncore_loop_timeout=max(1, quiet_s // 4),
        max_request_header_size=HEADER_BYTES,
        max_request_body_size=bounds.body_bytes,
        outbuf_high_watermark=_NEVER,
        channel_request_lookahead=1,
        clear_untrusted_proxy_headers=True,
        ident=None,
    )
    server.channel_class = type("PatientChannel", (Channel,), {"patience": patience})
    return server
