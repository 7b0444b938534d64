"""One entry of ``folders``: an inbox with its outbox, its quarantine and its rules."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from watcher.config import Folder as FolderSettings
from watcher.durable import Replaced, numbered
from watcher.errors import FrameError, NameTaken, WatcherError, in_words, may_be_one_place
from watcher.frame import Frame, Source
from watcher.imagefile import extension
from watcher.inbox import Inbox, identity_of
from watcher.journal import Journal, Row
from watcher.origin import Origin, ours
from watcher.outbox import Outbox, Output
from watcher.quarantine import Quarantine, reason
from watcher.volume import Anchor, absent, is_there

log = logging.getLogger(__name__)

_NAMES_TRIED = 1000  # of the names that a source may have got in quarantine


class Folder:
    def __init__(
        self,
        index: int,
        settings: FolderSettings,
        model: str,
        tell: Callable[[str, str | None], None] = lambda _place, _trouble: None,
    ) -> None:
        """``tell``: what stands in the way of a place, ``None`` when it is over."""
        self.index = index
        self.settings = settings
        self.inbox = Inbox(settings.inbox, recursive=settings.recursive, ignore=settings.ignore)
        self.outbox = Outbox(settings.outbox, settings.output.name, model)
        self.quarantine = Quarantine(settings.failed)
        self._tell = tell
        self._processed = Anchor(settings.processed)

    @property
    def endings(self) -> tuple[str, ...]:
        """What follows the base in every file that one frame gives; the map itself first."""
        output = self.settings.output
        preview = () if output.preview == "none" else (".preview.jpg",)
        return (*(extension(fmt) for fmt in output.formats), *preview, *((".json",) if output.sidecar else ()))

    def attempt(self, journal: Journal, source: Source, *, alone: bool, patient: bool) -> Frame:
        """Write the attempt down and claim the map's name."""
        row_id, base, attempt = journal.attempt(
            source,
            self.outbox.folder,
            self.outbox.bases(source.rel),
            lambda base: self._taken(base, source),
            alone=alone,
        )
        return Frame(row_id, source, self.index, base, attempt, alone, patient)

    def _taken(self, base: str, source: Source) -> bool:
        """Whether a file of another origin is in the way. A map says itself whose it is, even to a new journal.

        What an outbox that is away or silent may hold is asked again before the map is published.
        """
        origin = Origin(source.rel, source.identity.size)
        try:
            return ours(self.outbox, base, self.endings, origin) is None
        except OSError:
            return False

    def published(self, row: Row) -> list[str]:
        """What a process that was killed had published of a row's content."""
        try:
            there = ours(self.outbox, row.base, self.endings, Origin(row.rel, row.size)) or ()
        except OSError:
            return []
        return [str(self.outbox.folder / (row.base + ending)) for ending in there]

    def publish(
        self, journal: Journal, frame: Frame, outputs: tuple[Output, ...], sha256: str = ""
    ) -> tuple[Path, ...]:
        """Make a frame's files appear, under another name where by now a file of another origin has the claimed one.

        Raises ``OSError``; publishing again is harmless.
        """
        self.outbox.anchor.create()
        origin = Origin(frame.source.rel, frame.source.identity.size, sha256)
        data = {output.ending: output.data for output in outputs}
        base, replacing = journal.claimed(frame)
        while True:
            try:
                there = None if replacing else ours(self.outbox, base, data, origin, data)
                if there is None and not replacing:
                    raise NameTaken(f"{base} in the outbox is not of this picture")
                return self.outbox.publish(base, outputs, there)
            except NameTaken as error:
                log.warning("%s: %s; its map gets another name", frame, error.what)
            names = self.outbox.bases(frame.source.rel)
            base = journal.rename(
                frame, self.outbox.folder, names, lambda name: ours(self.outbox, name, data, origin, data) is None
            )

    def fail(self, journal: Journal, frame: Frame, error: BaseException) -> None:
        """Give up on the frame: into the journal first, then the source into quarantine."""
        why = reason_of(error, frame.attempt)
        journal.fail(frame, why)
        self.file(journal, frame, frame.source, why)

    def file(self, journal: Journal, who: Frame | Row, source: Source, why: dict[str, Any]) -> bool:
        """Put a failed source into quarantine; False where a volume stands in the way (it is tried again).

        Only the content that failed goes there: new content under its name stays in the inbox and is done.
        """
        try:
            content = source.identity.content
            if identity_of(os.lstat(source.path)).content != content:
                raise FileNotFoundError
            place = self.quarantine.admit(source.path, source.rel, source.inbox, why, content)
        except (FileNotFoundError, Replaced):
            if not self._is_there():
                return False
            log.warning("#%d %s: failed (%s); its file has left the inbox", who.id, source.rel, why["what"])
            journal.forget(source.inbox, source.key, "failed")
            return True
        except OSError as error:
            if may_be_one_place(error):
                self._tell(str(source.path), f"failed, and cannot be put into quarantine: {in_words(error)}")
            else:
                self._tell(str(self.quarantine.folder), f"failed pictures stay in the inbox: {in_words(error)}")
            return False
        self._tell(str(self.quarantine.folder), None)
        self._tell(str(source.path), None)
        journal.filed(who, str(place))
        log.warning("#%d %s: failed: %s. It is kept in %s", who.id, source.rel, why["what"], place)
        return True

    def _is_there(self) -> bool:
        try:
            self.inbox.anchor.check()
        except OSError:
            return False
        return True

    def dispose(self, source: Source) -> None:
        """Put a source away whose map is durable, as the settings say. Raises ``SourceChanged``, ``OSError``."""
        if self.settings.after == "move":
            self._processed.create()
        self.inbox.dispose(source, self.settings.after, self.settings.processed)

    def seek(self, journal: Journal, row: Row) -> None:
        """A failed source that was not filed: still in the inbox (then intake files it), in quarantine, or taken away.

        Raises ``OSError`` where that cannot be told.
        """
        if is_there(row.inbox / row.rel) or not self._is_there():
            return  # an inbox that is away says nothing
        place = self.explain_again(row)
        if place is not None:
            journal.filed(row, str(place))
        else:
            log.info("#%d %s: failed; its file was taken away", row.id, row.rel)
            journal.forget(row.inbox, row.key, "failed")

    def explain_again(self, row: Row) -> Path | None:
        """Where a source lies that had only got as far as quarantine; its reason is written now, if it was not.

        ``None``: it is not there. Raises ``OSError`` where that cannot be told.
        """
        found = list(self._quarantined(row))
        for place in found:
            if not self.quarantine.explained(place):
                self.quarantine.explain(place, row.rel, row.inbox, row.reason or {})
                return place
        known = {case.path for case in self.quarantine.cases() if (case.rel, case.inbox) == (row.rel, row.inbox)}
        return next((place for place in found if place in known), None)

    def _quarantined(self, row: Row) -> Iterator[Path]:
        place = (self.quarantine.folder / row.rel).parent
        try:
            names = os.listdir(place)
        except (FileNotFoundError, NotADirectoryError):
            if absent(self.quarantine.folder) is not None:
                raise
            return
        for name in itertools.islice(numbered(os.path.basename(row.rel)), _NAMES_TRIED):
            if name in names and row.put_away_as(os.lstat(place / name)):
                yield place / name


def reason_of(error: BaseException, attempts: int) -> dict[str, Any]:
    """The reason file's content for an error."""
    if isinstance(error, FrameError):
        return reason(error.code, error.what, error.remedy, attempts)
    if isinstance(error, WatcherError):
        return reason("failed", error.what, error.remedy, attempts)
    if isinstance(error, MemoryError):
        return reason("too-large", "memory did not suffice for this picture", "Make it smaller.", attempts)
    return reason("unexpected", f"{type(error).__name__}: {error}", "Please report this with the picture.", attempts)
