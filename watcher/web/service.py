"""Service: the fronts inside the daemon: waitress for HTTP, the local socket for servers of other processes.

Starts after the rooms, stops before them. One thread runs waitress' loop, which reads requests and so never gives a
thread to a slow client; its pool waits at the desk.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from watcher import config
from watcher.clock import now_s
from watcher.errors import in_words
from watcher.web.app import make_app
from watcher.web.desk import Desk, Entrance
from watcher.web.listening import Bounds, listen
from watcher.web.near import SocketServer
from watcher.web.token import Token

log = logging.getLogger(__name__)

_BEYOND_BACKLOG = 24  # threads for what is in work, the streams, and for saying no
_CONNECTIONS_MORE = 64  # those that wait for a thread, or for nothing
_FORM_BYTES = 100_000


class Service:
    def __init__(self, settings: config.Settings, entrance: Entrance, about: Callable[[], Mapping[str, Any]]) -> None:
        """Binds the port. Raises ``OSError`` where that is taken."""
        api, state_dir = settings.api, config.state_dir(settings)
        most = api.max_mb * 1_000_000
        self._desk = Desk(settings, entrance, about)
        self._socket = SocketServer(state_dir, self._desk, most)
        token = Token(state_dir)
        token.make()
        threads = api.backlog + _BEYOND_BACKLOG
        host = "127.0.0.1" if api.host == "localhost" else api.host
        bounds = Bounds(host, api.port, threads, threads + _CONNECTIONS_MORE, most + _FORM_BYTES)
        self._server: Any = listen(make_app(api, self._desk, token, closed=self._desk.closed), bounds)
        self._left: dict[int, Any] = {}  # what is open when the loop ends
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)
        self._where = f"http://{api.host}:{api.port}/" if ":" not in api.host else f"http://[{api.host}]:{api.port}/"
        if api.expose:
            log.warning(
                "%s may be reached by other machines: whoever has the token sees and sends pictures", self._where
            )

    def start(self) -> None:
        """Raises ``OSError`` where the local socket cannot be made; whoever comes by the port is served without it."""
        self._thread.start()
        log.info("the local service is at %s", self._where)
        self._socket.start()

    def stop(self, until_s: float) -> bool:
        """Whoever waits is answered 503; True when all its threads have ended by then."""
        self._desk.closed.set()
        ended = self._socket.stop(until_s)
        if self._thread.ident is None:
            self._server.close()
            return ended
        self._server.task_dispatcher.shutdown(timeout=max(0.1, until_s - now_s() - 0.5))
        self._server.trigger.pull_trigger(self._leave)
        self._thread.join(max(0.0, until_s - now_s()))
        if self._thread.is_alive():
            return False
        from waitress import wasyncore

        for left in (self._left, self._server._map):
            wasyncore.close_all(left, ignore_all=True)
        return ended

    def _leave(self) -> None:
        """End the loop, in its own thread. Nothing is closed yet: the trigger may just be pulled once more."""
        self._left.update(self._server._map)
        self._server._map.clear()

    def _run(self) -> None:
        try:
            self._server.run()
        except Exception:
            log.exception("the local service ended by an error that nobody expected")


def open_service(
    settings: config.Settings,
    entrance: Entrance,
    about: Callable[[], Mapping[str, Any]],
    tell: Callable[[str, str | None], None],
) -> Service | None:
    """The service, running; a port that is taken is told as a trouble, and the folders go on without."""
    try:
        service = Service(settings, entrance, about)
    except OSError as error:
        where = f"{settings.api.host}:{settings.api.port}"
        tell("api", f"the local service cannot listen on {where}: {error.strerror or error}")
        return None
    try:
        service.start()
    except OSError as error:
        tell("api", f"servers of your own cannot reach the daemon, its local socket cannot be made: {in_words(error)}")
    return service
