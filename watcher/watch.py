"""Watch: notifications of the system become ``hint(path)``. No I/O here, no decisions.

The observer has threads of its own. They may die, fall silent or lose their folder; ``check`` notices and starts
a new observer. Everything that is missed meanwhile is found by the rescan, so an event is never more than a hint.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchdog.events import (
    EVENT_TYPE_CLOSED_NO_WRITE,
    EVENT_TYPE_DELETED,
    EVENT_TYPE_OPENED,
    DirCreatedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

from watcher.clock import now_s, stamp

log = logging.getLogger(__name__)

_AGAIN_S = 60.0  # a system that refuses to watch is not asked again at once

# Reading a frame opens and closes it; hints of that kind would feed on themselves. The system is asked for nothing
# else than these, so that a frame's own way through the inbox wakes nobody.
_UNTOLD = frozenset((EVENT_TYPE_OPENED, EVENT_TYPE_CLOSED_NO_WRITE, EVENT_TYPE_DELETED))
_TOLD: list[type[FileSystemEvent]] = [
    *(FileCreatedEvent, FileMovedEvent, FileModifiedEvent, FileClosedEvent),
    *(DirCreatedEvent, DirMovedEvent),
]
# On Linux a file that leaves the inbox holds back everything behind it for this long, in case it comes back under
# another name. Half a second is the library's own value, and every frame that is put away leaves the inbox.
InotifyMoveEventGrouper.delay = 0.01


@dataclass(frozen=True, slots=True)
class Root:
    folder: Path
    recursive: bool


class _Hints(FileSystemEventHandler):
    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in _UNTOLD or (event.is_directory and event.event_type == "modified"):
            return
        # An exception here would end the observer's thread for good.
        with contextlib.suppress(Exception):
            self._hint(os.fsdecode(event.dest_path or event.src_path))


class Watch:
    """Watches the roots that exist; ``check`` takes in those that come back."""

    def __init__(self, roots: Sequence[Root], hint: Callable[[str], None]) -> None:
        self._roots = tuple(roots)
        self._handler = _Hints(hint)
        self._observer: BaseObserver | None = None
        self._watched: dict[Path, tuple[int, int]] = {}
        self._not_before_s = 0.0
        self.note = ""  # what there is to say about watching, "" where all is as it was at the start

    def start(self) -> None:
        if not self._roots:
            return
        observer: BaseObserver | None = None
        try:
            observer = Observer()
            watched = self._schedule(observer)
            observer.start()
        except Exception as error:
            # Out of watches, or refused (each system in its own way): the rescan still finds everything.
            note = f"by events it is not possible ({error}). The inbox is looked at every rescan_s instead"
            if self.note != note:
                self.note = note
                log.warning("watching: %s", note)
            self._not_before_s = now_s() + _AGAIN_S
            if observer is not None:
                observer.stop()
            return
        self._observer, self._watched, self.note = observer, watched, ""

    def _schedule(self, observer: BaseObserver) -> dict[Path, tuple[int, int]]:
        watched = {}
        for root in self._roots:
            with contextlib.suppress(OSError):
                place = os.path.realpath(root.folder)
                state = os.stat(place)
                observer.schedule(self._handler, place, recursive=root.recursive, event_filter=_TOLD)
                watched[root.folder] = (state.st_dev, state.st_ino)
        return watched

    def stop(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(timeout=2)

    def check(self) -> str | None:
        """Start a new observer where the old one no longer serves; returns why, ``None`` where none was started."""
        why = self._complaint() if now_s() >= self._not_before_s else None
        if why is not None:
            self.stop()
            self.start()
        if why is None or self._observer is None:
            return None
        self.note = f"started anew at {stamp()}: {why}"
        log.warning("watching was %s", self.note)
        return why

    def _complaint(self) -> str | None:
        present = {}
        for root in self._roots:
            with contextlib.suppress(OSError):
                state = os.stat(root.folder)
                present[root.folder] = (state.st_dev, state.st_ino)
        if self._observer is None:
            return "no observer was running" if present else None
        if not self._observer.is_alive():
            return "the observer's thread had ended"
        if present != self._watched:
            return "an inbox came, went or was replaced"
        if any(not emitter.is_alive() for emitter in self._observer.emitters):
            return "an emitter's thread had ended"
        return None
