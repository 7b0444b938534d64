"""One entry of ``folders``: an inbox with its outbox, its quarantine and its rules."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

from watcher.config import Folder as FolderSettings
from watcher.durable import Replaced
from watcher.errors import FrameError, WatcherError, in_words, may_be_one_place
from watcher.frame import Frame, Source
from watcher.imagefile import extension, read_facts
from watcher.inbox import Inbox, identity_of
from watcher.journal import Journal, Row
from watcher.outbox import Outbox
from watcher.quarantine import Quarantine, reason
from watcher.volume import Anchor

log = logging.getLogger(__name__)


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
        """Whether a file of another origin is in the way. A map says itself whose it is, even to a new journal."""
        return self.outbox.taken(base, self.endings) and not self._is_of(base, source)

    def _is_of(self, base: str, source: Source) -> bool:
        path = self.outbox.folder / (base + self.endings[0])
        try:
            facts = read_facts(path) or {}
        except OSError:
            return False  # what cannot be read is not ours to replace
        return (facts.get("source"), facts.get("source_bytes")) == (source.rel, str(source.identity.size))

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

    def explain_again(self, row: Row) -> None:
        """A kill between moving a source to quarantine and writing its reason: write it now."""
        for candidate in self._quarantined(row):
            if not self.quarantine.explained(candidate):
                self.quarantine.explain(candidate, row.rel, row.inbox, row.reason or {})
                return

    def _quarantined(self, row: Row) -> Iterator[Any]:
        place = (self.quarantine.folder / row.rel).parent
        name = os.path.basename(row.rel)
        if not place.is_dir():
            return
        for entry in sorted(place.iterdir()):
            same_name = entry.name == name or entry.name.startswith(name.rpartition(".")[0] + " (")
            if same_name and not entry.name.endswith(".error.json"):
                state = entry.lstat()
                if (state.st_size, state.st_mtime_ns) == (row.size, row.mtime_ns):
                    yield entry


def reason_of(error: BaseException, attempts: int) -> dict[str, Any]:
    """The reason file's content for an error."""
    if isinstance(error, FrameError):
        return reason(error.code, error.what, error.remedy, attempts)
    if isinstance(error, WatcherError):
        return reason("failed", error.what, error.remedy, attempts)
    if isinstance(error, MemoryError):
        return reason("too-large", "memory did not suffice for this picture", "Make it smaller.", attempts)
    return reason("unexpected", f"{type(error).__name__}: {error}", "Please report this with the picture.", attempts)
