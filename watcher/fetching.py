"""Fetching: one thread that brings in files which are only in iCloud, where the settings ask for it.

Reading such a file blocks until it is downloaded, which may take for ever. So nobody else does it: this thread owns
nothing, takes one file at a time, and when it does not come back the daemon goes on and ends without it.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from watcher import darwin
from watcher.clock import now_s
from watcher.errors import explain
from watcher.handover import Handover

log = logging.getLogger(__name__)

DEADLINE_S = 900.0
_AGAIN_S = 60.0
_WANTED_MOST = 500  # the rescan asks again for what found no place


class Fetcher:
    """``on`` False: wants nothing. ``tell`` is told what stands in the way, by place; ``arrived`` what is here now."""

    def __init__(
        self, tell: Callable[[str, str | None], None], arrived: Callable[[str], None], *, on: bool = True
    ) -> None:
        self._tell, self._arrived, self._on = tell, arrived, on
        self._queue: Handover[Path] = Handover(_WANTED_MOST)
        self._wanted: set[Path] = set()
        self._not_before_s: dict[Path, float] = {}
        self._begun_s: float | None = None
        self._now: Path | None = None
        self.fetched = self.failed = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fetcher", daemon=True)

    def start(self) -> None:
        if self._on:
            self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """False where a read does not come back; it may be left alone, since it holds nothing."""
        self._stopping.set()
        self._queue.close()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def want(self, path: Path) -> bool:
        """Called for every sight of a file that is not here; whether it is being fetched. Never blocks."""
        if not self._on or now_s() < self._not_before_s.get(path, 0.0):
            return False
        if path in self._wanted:
            return True
        if self._queue.full():
            return False
        self._wanted.add(path)
        self._queue.give(path)
        return True

    def facts(self) -> dict[str, int]:
        """``policy``: see ``darwin.download_policy``; ``fetched`` and ``failed`` since the start."""
        return {"policy": darwin.download_policy(), "fetched": self.fetched, "failed": self.failed}

    @property
    def busy(self) -> bool:
        """Whether something will still come: a read that is beyond its deadline is no longer waited for."""
        return bool(self._wanted) and not self.stuck

    @property
    def stuck(self) -> bool:
        begun_s = self._begun_s  # the fetcher's thread may set it back at any moment
        return begun_s is not None and now_s() - begun_s > DEADLINE_S

    def look(self) -> None:
        """Say so when a read does not come back; asked by the main thread."""
        if self.stuck and self._now is not None:
            self._tell(
                str(self._now), f"it has not come from iCloud for {DEADLINE_S:.0f} s. No other is fetched meanwhile"
            )

    def _run(self) -> None:
        darwin.allow_downloads()
        while (path := self._queue.take()) is not None and not self._stopping.is_set():
            self._now, self._begun_s = path, now_s()
            error = self._read(path)
            self._begun_s = self._now = None
            self._note(path, error)
            self._wanted.discard(path)  # last: while it is wanted, nobody takes this room for idle

    def _read(self, path: Path) -> OSError | None:
        """One byte is enough: the system brings the whole file before it gives any of it."""
        try:
            with open(path, "rb", buffering=0) as file:
                file.read(1)
        except OSError as error:
            return error
        return None

    def _note(self, path: Path, error: OSError | None) -> None:
        if error is None:
            self.fetched += 1
            self._not_before_s.pop(path, None)
            log.info("%s: fetched from iCloud", path)
        elif error.errno not in (errno.ENOENT, errno.ENOTDIR):
            self.failed += 1
            if len(self._not_before_s) >= _WANTED_MOST:
                self._not_before_s.clear()
            self._not_before_s[path] = now_s() + _AGAIN_S
            self._tell(str(path), "it could not be fetched from iCloud: {}. {}".format(*explain(error)))
            return
        self._arrived(str(path))
