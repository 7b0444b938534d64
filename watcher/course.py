"""Course: what all seams share: the folders, the journal's place, the bell at the end, and what stands in the way."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from watcher.errors import SourceChanged, in_words, may_be_one_place
from watcher.folder import Folder
from watcher.frame import Frame, Outcome, Source
from watcher.shots import Shots, shot_of
from watcher.turns import Turns

log = logging.getLogger(__name__)

_TROUBLES_MOST = 100


class Troubles:
    """What stands in the way now, by place; told by any thread, logged once, cleared when it is over."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self._by_place: dict[str, str] = {}

    def tell(self, place: str, trouble: str | None) -> None:
        """``None``: all right again. Harmless to repeat."""
        if trouble is None:
            if self._by_place.pop(place, None) is None:
                return
            log.info("%s: all right again", place)
        else:
            if self._by_place.get(place) == trouble or len(self._by_place) >= _TROUBLES_MOST:
                return
            log.warning("%s: %s", place, trouble)
            self._by_place[place] = trouble
        self._on_change()

    def forget(self, below: str, met: set[str]) -> None:
        """After a whole scan: files that are gone, and folders that gave no trouble now, stand in nobody's way."""
        for place in list(self._by_place):
            over = not os.path.lexists(place) or (os.path.isdir(place) and place not in met)
            if place.startswith(below + "/") and over:
                self.tell(place, None)

    def lines(self) -> list[str]:
        return [f"{place}: {trouble}" for place, trouble in list(self._by_place.items())]


def put_away(folder: Folder, source: Source, troubles: Troubles) -> bool:
    """Dispose of a source whose map is durable; what a volume refuses is told once. False: it has changed meanwhile."""
    settings = folder.settings  # what is told of the inbox itself is over with the next look into it
    place = f"{settings.inbox} (deleting)" if settings.after == "delete" else str(settings.processed)
    try:
        folder.dispose(source)
    except SourceChanged:
        return False
    except OSError as error:
        if may_be_one_place(error):
            troubles.tell(str(source.path), f"its map is done, but it cannot be put away: {in_words(error)}")
        else:
            troubles.tell(place, f"pictures whose maps are done cannot be put away: {in_words(error)}")
    else:
        for clear in (str(source.path), place):
            troubles.tell(clear, None)
    return True


@dataclass(frozen=True, slots=True)
class Course:
    """``ended`` is rung from any thread when a frame leaves the path, ``alarm`` when a thread has failed."""

    folders: tuple[Folder, ...]
    journal: Path
    ended: Callable[[Frame, Outcome], None]
    troubles: Troubles
    alarm: Callable[[], None]
    shots: Shots | None = None
    turns: Turns = field(default_factory=Turns)

    def folder_of(self, frame: Frame) -> Folder:
        return self.folders[frame.folder]

    def take_turn(self, frame: Frame) -> None:
        """A frame of a live shot keeps its place among the others of it; any other frame needs none."""
        if self.shots is None or self.folder_of(frame).settings.output.range != "shot-live":
            return
        shot = shot_of(frame.source.rel)
        if shot is not None:
            self.turns.join(frame, f"{frame.folder}|{shot}")
