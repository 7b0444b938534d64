"""Pace: when intake looks, and what the bytes of a file say about waiting."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from watcher import config, imagefile, settle
from watcher.backlog import Entry
from watcher.clock import now_s, wall_s
from watcher.folder import Folder
from watcher.frame import Source, Wholeness
from watcher.inbox import open_source
from watcher.intake.open_shots import KEPT
from watcher.journal import Row
from watcher.volume import state_of

_ONCE_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """When to look: the rules of settling, the time between rescans, and the folders that no event is heard of.

    ``remake``: an inbox that was thrown away is made again.
    """

    rules: settle.Rules
    rescan_s: float
    polled: frozenset[int] = frozenset()
    shot_settle_s: float = 0.0
    remake: bool = True

    @classmethod
    def of(cls, watch: config.Watch, polled: frozenset[int], *, once: bool) -> Pace:
        """As the settings say; ``once`` waits neither long for truncated files nor for the next frame of a shot."""
        patience_s = min(_ONCE_PATIENCE_S, watch.patience_s) if once else watch.patience_s
        rules = settle.Rules(watch.settle_s, patience_s)
        return cls(rules, watch.rescan_s, polled, 0.0 if once else watch.shot_settle_s, remake=not once)


def wholeness_of(source: Source) -> Wholeness | None:
    """What the file's own bytes say; ``None`` for a file that neither is nor claims to be a picture."""
    with open_source(source) as file:
        if not imagefile.claims_picture(source.name) and imagefile.sniff(file.read(imagefile.HEAD_BYTES)) is None:
            return None
        file.seek(0)
        return imagefile.wholeness(file, source.identity.size)


def remember_hold(entry: Entry, row: Row) -> None:
    """A suspect runs alone; a truncated file has been waiting since the journal says so."""
    if row.reason and row.reason.get("code") == "suspect":
        entry.alone = True  # it had settled before
        entry.patient = entry.waiting.wholeness is not Wholeness.PARTIAL
        entry.waiting = replace(entry.waiting, wholeness=Wholeness.WHOLE)
    elif row.reason is None or row.reason.get("code") != KEPT:
        since_s = now_s() - max(0.0, wall_s() - (row.ended_at or 0.0))
        entry.waiting = settle.Waiting(entry.source.identity, Wholeness.PARTIAL, since_s, since_s)
        entry.why = str((row.reason or {}).get("what", entry.why))


def gone(folders: Sequence[Folder], inbox: Path, rel: str) -> bool:
    """Whether a source has left its inbox; an inbox that is away, or does not say, says nothing."""
    folder = next((each for each in folders if each.settings.inbox == inbox), None)
    try:
        if state_of(inbox / rel) is not None:
            return False
        if folder is None:
            return stat.S_ISDIR(os.stat(inbox).st_mode)
        folder.inbox.anchor.check()  # after the look: it was there all the time, or is another now
    except OSError:
        return False
    return True
