"""Crash guard: what was being tried when a process died, kept where the next process finds it.

CoreML can abort or hang the whole process, which nothing in Python can catch. So a mark is on the disk, synced, before
CoreML is asked and until its first run is over. A mark without its process is a strike; after two strikes that rung of
the ladder is left out. What a single frame does is the journal's to count: an attempt is written before it begins.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from watcher import durable
from watcher.session.compiled import alive

MOST_STRIKES = 2
CONDEMNED = 1000
_STRIKES = "strikes.json"
_MARK = "trying-"


class Guard:
    """``folder`` holds the marks. A disk that refuses them costs the protection, not the start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> list[str]:
        """Turn the marks of dead processes into strikes; returns what each had been trying."""
        found = []
        for mark in sorted(self._folder.glob(f"{_MARK}*.json")) if self._folder.is_dir() else []:
            pid = mark.stem.removeprefix(_MARK)
            if not pid.isdigit() or alive(int(pid)):
                continue
            try:
                what = str(json.loads(mark.read_text(encoding="utf-8"))["what"])
            except (OSError, ValueError, KeyError, TypeError):
                what = ""
            if what:
                self._count(what)
                found.append(what)
            with contextlib.suppress(OSError):
                mark.unlink()
        return found

    def strikes(self, what: str) -> int:
        return self._read().get(what, 0)

    @contextlib.contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """While this lasts, a death of the process counts against ``what``. Success wipes its earlier strikes."""
        with contextlib.suppress(OSError):
            durable.make_folder(self._folder, 0o700)
            durable.write_whole(self._mark(), json.dumps({"what": what}).encode())
        try:
            yield
        finally:
            self.forgive()
        if self.strikes(what):
            self._write({key: count for key, count in self._read().items() if key != what})

    def condemn(self, what: str) -> None:
        """``what`` gave a frame a map that cannot be right: it is not tried again until all is begun anew."""
        with contextlib.suppress(OSError):
            durable.make_folder(self._folder, 0o700)
        self._write({**self._read(), what: CONDEMNED})

    def forgive(self) -> None:
        """This process ends, or goes on, for another reason than what it was trying."""
        with contextlib.suppress(OSError):
            self._mark().unlink(missing_ok=True)

    def forget(self) -> None:
        """Begin anew: no strikes."""
        self._write({})

    def _mark(self) -> Path:
        return self._folder / f"{_MARK}{os.getpid()}.json"

    def _count(self, what: str) -> None:
        known = self._read()
        self._write({**known, what: known.get(what, 0) + 1})

    def _read(self) -> dict[str, int]:
        try:
            known = json.loads((self._folder / _STRIKES).read_text(encoding="utf-8"))
            return {str(key): int(count) for key, count in known.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self, strikes: dict[str, int]) -> None:
        with contextlib.suppress(OSError):
            durable.write_whole(self._folder / _STRIKES, json.dumps(strikes, indent=1).encode())
