"""Foreign: the files of an inbox that are no pictures. They never take a place in view, however many they are."""

from __future__ import annotations

from enum import Enum, auto

from watcher import imagefile
from watcher.backlog import Handled
from watcher.frame import Source
from watcher.inbox import open_source

_OPENED_MOST = 50_000  # in one scan: intake has other things to do than to open files


class Judged(Enum):
    CANDIDATE = auto()  # it may be a picture
    FOREIGN = auto()  # neither its name nor its content is a picture's
    LATER = auto()  # its content has to be looked at, in the next scan


class Foreign(Handled):
    def __init__(self) -> None:
        super().__init__()
        self._opened = 0

    def begin(self) -> None:
        """A scan begins."""
        self._opened = 0

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
