"""Recovery: what the process before us left, and whose fault its end was.

An attempt that is still open at start was in hand when the process died. Such frames become suspects: they run
again one at a time, alone, before everything else, so that the guilty one is found and the others are not punished.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher.durable import bring_back, left_out_of_reach, remove, sweep, write_whole
from watcher.errors import VolumeTrouble, explain
from watcher.folder import Folder
from watcher.frame import Frame
from watcher.inbox import identity_of
from watcher.journal import Journal, Row
from watcher.quarantine import reason
from watcher.volume import same_volume

log = logging.getLogger(__name__)

CRASH_FILE = "crash.log"
LAST_WORDS_FILE = "last-words.json"
# A process that is killed from outside says nothing about the frame in hand; only a long row of it does.
_INTERRUPTIONS_FACTOR = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """How the process before us ended: a crash trace, a named frame that hung, or nothing."""

    crash: str = ""
    guilty: int | None = None
    words: str = ""


def say_last_words(state_dir: Path, frame: Frame | None, what: str) -> None:
    """Before the process ends itself: who did it. Must not fail, must not wait."""
    text = json.dumps({"frame": frame.id if frame else None, "what": what})
    with contextlib.suppress(OSError):
        write_whole(state_dir / LAST_WORDS_FILE, text.encode())


def read_evidence(state_dir: Path) -> Evidence:
    crash, guilty, words = "", None, ""
    with contextlib.suppress(OSError):
        crash = (state_dir / CRASH_FILE).read_text(encoding="utf-8", errors="replace").strip()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found: dict[str, Any] = json.loads((state_dir / LAST_WORDS_FILE).read_bytes())
        guilty, words = found.get("frame"), str(found.get("what", ""))
    return Evidence(crash, guilty, words)


def clear_evidence(state_dir: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.truncate(state_dir / CRASH_FILE, 0)  # not removed: this process has it open for its own trace
    with contextlib.suppress(FileNotFoundError):
        os.unlink(state_dir / LAST_WORDS_FILE)


def recover(journal: Journal, folders: Sequence[Folder], state_dir: Path, max_attempts: int) -> int:
    """Close every open attempt; returns how many frames were in hand. Raises ``sqlite3.Error``."""
    evidence = read_evidence(state_dir)
    open_rows = journal.in_state("attempt")
    if evidence.crash:
        log.error("the process before this one crashed:\n%s", evidence.crash)
    elif evidence.words:
        log.error("the process before this one ended itself: %s", evidence.words)
    elif open_rows:
        log.warning("the process before this one was ended with %d frames in hand", len(open_rows))
    for row in open_rows:
        _recover_one(journal, folders, row, evidence, max_attempts)
    for row in journal.unfiled():
        folder = _folder_of(folders, row)
        if folder is not None:
            with contextlib.suppress(OSError):  # another time, then
                folder.seek(journal, row)
    clear_evidence(state_dir)
    return len(open_rows)


def _recover_one(journal: Journal, folders: Sequence[Folder], row: Row, evidence: Evidence, max_attempts: int) -> None:
    folder = _folder_of(folders, row)
    if folder is None:
        journal.give_back(row)  # its folder is no longer in the settings
        return
    blamed = bool(evidence.crash) or evidence.guilty == row.id
    if not blamed:
        journal.interrupted(row)
    attempts = row.attempts if blamed else row.attempts - 1
    interruptions = row.interruptions + (0 if blamed else 1)
    proven = row.alone or evidence.guilty == row.id
    given_up = proven and (attempts >= max_attempts or interruptions >= max_attempts * _INTERRUPTIONS_FACTOR)
    if given_up:
        what = _what_happened(evidence, attempts if blamed else interruptions)
        journal.fail(row, reason("crash" if evidence.crash else "hang" if blamed else "killed", what, "", row.attempts))
        log.error("#%d %s: given up: %s", row.id, row.rel, what)
    else:
        journal.suspect(row, folder.published(row))
        log.warning("#%d %s: was in hand; it runs again, alone, before everything else", row.id, row.rel)


def _what_happened(evidence: Evidence, times: int) -> str:
    if evidence.crash:
        first = evidence.crash.splitlines()[0]
        return f"the process crashed {times} times while this picture alone was in work ({first})"
    if evidence.words:
        return f"{evidence.words} ({times} times)"
    return f"the process was killed {times} times while this picture alone was in work"


def _folder_of(folders: Sequence[Folder], row: Row) -> Folder | None:
    return next((folder for folder in folders if folder.settings.inbox == row.inbox), None)


def clean(folders: Sequence[Folder], state_dir: Path) -> int:
    """Remove the hidden files that a killed process left half; returns how many. A volume that is away can wait."""
    removed = _sweep(state_dir, recursive=False)
    for folder in folders:
        for place in _written(folder):
            removed += _sweep(place, recursive=True)
    return removed


def finish_deletions(journal: Journal, folders: Sequence[Folder]) -> None:
    """Sources that a killed process had put out of reach to delete them: gone if they are done, else back in the inbox.

    One that was replaced in that very moment is new, and nobody may delete it. An inbox that is away can wait.
    """
    for folder in folders:
        settings = folder.settings
        try:
            for hidden in left_out_of_reach(settings.inbox, recursive=settings.recursive):
                rel = str((hidden.parent.parent / hidden.name).relative_to(settings.inbox))
                rows = [journal.find(settings.inbox, key) for key in dict.fromkeys(folder.inbox.keys(rel))]
                content = identity_of(os.lstat(hidden))
                if any(row and row.state == "done" and row.same_content(content) for row in rows):
                    remove(hidden)
                else:
                    log.warning(
                        "%s: is back in the inbox; a process that was killed had it in hand", bring_back(hidden)
                    )
        except OSError as error:
            log.warning("%s: could not be looked through: %s. %s", settings.inbox, *explain(error))


def _written(folder: Folder) -> Iterator[Path]:
    """Where half-written files may lie. A move leaves none, except to another volume, where it is a copy."""
    settings = folder.settings
    yield from (settings.outbox, settings.failed)
    if not same_volume(settings.inbox, settings.processed):
        yield settings.processed
    if not same_volume(settings.inbox, settings.failed):
        yield settings.inbox


def _sweep(place: Path, *, recursive: bool) -> int:
    try:
        return sweep(place, recursive=recursive)
    except OSError as error:
        log.warning("%s: could not be looked through: %s. %s", place, *explain(error))
        return 0


def give_back(journal: Journal, guilty: Frame | None) -> int:
    """What was in hand goes back, uncounted, so that a stop is never taken for a crash; returns how many."""
    try:
        rows = [row for row in journal.in_state("attempt") if guilty is None or row.id != guilty.id]
        for row in rows:
            journal.give_back(row)
    except VolumeTrouble as error:
        log.warning("%s What was in hand is sorted out by the next start", error)
        return 0
    return len(rows)
