"""Foreign: the files of an inbox that are no pictures. They never take a place in view, however many they are."""

from __future__ import annotations

from collections.abc import Container
from enum import Enum, auto

from watcher import imagefile
from watcher.backlog import Handled, Key, mark_of
from watcher.frame import Source
from watcher.inbox import Known, open_source

_OPENED_MOST = 50_000  # in one scan: intake has other things to do than to open files


class Judged(Enum):
    CANDIDATE = auto()  # it may be a picture
    FOREIGN = auto()  # neither its name nor its content is a picture's
    LATER = auto()  # its content has to be looked at, in the next scan


class Foreign(Handled):
    def __init__(self) -> None:
        super().__init__()
        self._opened = 0
        self.skipped = 0  # in this scan, of those that were known before

    def begin(self) -> None:
        """A scan begins."""
        self._opened = self.skipped = 0

    def known(self, folder: int, handled: Handled, in_view: Container[Key]) -> Known:
        """Says of a file in one look-up that it is no news: foreign, or done and kept. It counts the foreign ones."""

        def is_known(key: str, size: int, mtime_ns: int) -> bool:
            mark = mark_of(folder, key, (size, mtime_ns))
            if (mark not in self.marks and mark not in handled.marks) or (folder, key) in in_view:
                return False
            self.skipped += mark in self.marks
            return True

        return is_known

    @property
    def tired(self) -> bool:
        """Whether the scan left files unopened: the next one has to come at once."""
        return self._opened >= _OPENED_MOST

    def judge(self, folder: int, source: Source) -> Judged:
        """By what is known of it, by its name, else by its first bytes."""
        if (folder, source.key, source.identity) in self:
            return Judged.FOREIGN
        if imagefile.claims_picture(source.name):
            return Judged.CANDIDATE
        if self.tired:
            return Judged.LATER
        self._opened += 1
        try:
            with open_source(source) as file:
                if imagefile.sniff(file.read(imagefile.HEAD_BYTES)) is not None:
                    return Judged.CANDIDATE
        except OSError:
            return Judged.CANDIDATE  # looking at it will say what stands in the way
        self.add(folder, source.key, source.identity)
        return Judged.FOREIGN
