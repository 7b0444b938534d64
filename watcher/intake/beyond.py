"""Beyond the window: files of the inboxes that there is no room for in view. They stand in the journal's line.

What is not in view costs no memory, however much it is; whose turn is next is asked of the journal, not of the inboxes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

from watcher.backlog import Key
from watcher.folder import Folder
from watcher.frame import Source
from watcher.inbox import Sighting
from watcher.journal import Journal, Place

_BATCH = 10_000


class Beyond:
    def __init__(self, folders: Sequence[Folder], journal: Journal) -> None:
        self.counts = dict.fromkeys(range(len(folders)), 0)
        self._folders = folders
        self._journal = journal
        self._late: list[tuple[int, Place]] = []
        self._called: set[Key] = set()  # came into view from the line, and stand in it until they are done or leave

    def remember(self) -> int:
        """The last arrival of an earlier life."""
        return self._journal.last_arrival([folder.settings.inbox for folder in self._folders])

    @property
    def total(self) -> int:
        return sum(self.counts.values()) + len(self._late)

    def sort_out(
        self, candidates: Iterator[Sighting], room: int, arrival: int, in_view: Callable[[], list[Place]]
    ) -> tuple[list[Sighting], int]:
        """(those that may come into view at once, how many are new in line): all of them fit, or all line up.

        ``in_view``: those who came before, with their arrivals, so that they keep their places as well.
        """
        first: list[Sighting] = []
        if not self._journal.anyone_in_line():
            first = list(itertools.islice(candidates, room + 1))
            if len(first) <= room:
                return first, 0
            self._journal.line_up(in_view())
        waiting = (seen.source for seen in itertools.chain(first, candidates) if seen.source is not None)
        new = 0
        while batch := list(itertools.islice(waiting, _BATCH)):
            new += self._journal.line_up([place_of(source, arrival) for source in batch])
        return [], new

    def later(self, index: int, source: Source, arrival: int) -> None:
        """One more, behind all others; written down with the next ``line_up``."""
        self._late.append((index, place_of(source, arrival)))

    def line_up(self) -> None:
        """Those who came late go to the end of the line."""
        for index in {index for index, _ in self._late}:
            self.counts[index] += self._journal.line_up([place for each, place in self._late if each == index])
        self._late.clear()

    def next(self, room: int, in_view: Collection[Key]) -> list[tuple[int, Place]]:
        """Those whose turn it is and that are not in view; a folder that is away keeps its places."""
        indices = {folder.settings.inbox: folder.index for folder in self._folders if _is_there(folder)}
        places = self._journal.first_in_line(list(indices), room + len(in_view)) if indices else []
        found = ((indices[place.inbox], place) for place in places)
        return [(index, place) for index, place in found if (index, place.key) not in in_view][:room]

    def called(self, taken: list[tuple[int, Place]], in_view: Collection[Key], away: Collection[int]) -> None:
        """They have been looked at: those that are not in view now were gone, done, or no pictures.

        A folder that went ``away`` meanwhile keeps its places. Whoever is called twice is counted once.
        """
        gone = []
        for index, place in taken:
            key = (index, place.key)
            if key not in in_view and index in away:
                continue
            if key not in self._called:
                self.counts[index] = max(0, self.counts[index] - 1)
                self._called.add(key)
            if key not in in_view:
                self._called.discard(key)
                gone.append(place)
        if gone:
            self._journal.leave_line(gone)

    def finished(self, key: Key) -> None:
        """Done or failed: the journal took it out of the line when it wrote that down."""
        self._called.discard(key)

    def left(self, key: Key) -> None:
        """It left view otherwise; should it come again, it lines up again."""
        if key in self._called:
            self._called.discard(key)
            self._journal.leave_line([Place(self._folders[key[0]].settings.inbox, key[1], "", 0)])


def place_of(source: Source, arrival: int) -> Place:
    return Place(source.inbox, source.key, source.rel, arrival)


def _is_there(folder: Folder) -> bool:
    try:
        folder.inbox.anchor.check()
    except OSError:
        return False
    return True
