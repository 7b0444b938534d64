"""Pace: when intake looks, and what the bytes of a file say about waiting."""

from __future__ import annotations

from dataclasses import dataclass

from watcher import imagefile, settle
from watcher.frame import Source, Wholeness
from watcher.inbox import open_source


@dataclass(frozen=True, slots=True)
class Pace:
    """When to look: the rules of settling, the time between rescans, and the folders that no event is heard of."""

    rules: settle.Rules
    rescan_s: float
    polled: frozenset[int] = frozenset()


def wholeness_of(source: Source) -> Wholeness | None:
    """What the file's own bytes say; ``None`` for a file that neither is nor claims to be a picture."""
    with open_source(source) as file:
        if not imagefile.claims_picture(source.name) and imagefile.sniff(file.read(64)) is None:
            return None
        file.seek(0)
        return imagefile.wholeness(file, source.identity.size)
