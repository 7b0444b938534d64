"""The journal's tables, and the values that come out of them."""

from __future__ import annotations

import json
import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher.frame import Frame, Identity

SCHEMA = """
CREATE TABLE IF NOT EXISTS frames (
    id INTEGER PRIMARY KEY,
    inbox BLOB NOT NULL,
    key BLOB NOT NULL,
    rel BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('attempt', 'held', 'done', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    alone INTEGER NOT NULL DEFAULT 0,
    attempt_at REAL NOT NULL,
    ended_at REAL,
    outbox BLOB NOT NULL,
    base BLOB NOT NULL,
    base_key BLOB NOT NULL,
    maps TEXT,
    reason TEXT,
    place BLOB,
    filed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (inbox, key)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS owner ON frames (outbox, base_key);
CREATE INDEX IF NOT EXISTS unfinished ON frames (state) WHERE state != 'done';
CREATE INDEX IF NOT EXISTS age ON frames (ended_at) WHERE state = 'done';
CREATE TABLE IF NOT EXISTS line (
    inbox BLOB NOT NULL, key BLOB NOT NULL, rel BLOB NOT NULL, arrival INTEGER NOT NULL, PRIMARY KEY (inbox, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS turn ON line (arrival, rel);
CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO totals VALUES ('done', 0);
"""
VERSION = 1
HISTORY_ROWS = 50_000


_COARSE_NS = 2 * 10**9  # FAT


@dataclass(frozen=True, slots=True)
class Row:
    """What the journal knows of one source."""

    id: int
    inbox: Path
    key: str
    rel: str
    size: int
    mtime_ns: int
    state: str
    attempts: int
    interruptions: int
    alone: bool
    attempt_at: float
    ended_at: float | None
    base: str
    reason: dict[str, Any] | None
    filed: bool
    place: str  # in quarantine, where that is known

    def same_content(self, identity: Identity) -> bool:
        return (self.size, self.mtime_ns) == identity.content

    def put_away_as(self, state: os.stat_result) -> bool:
        """Whether a file may be this content, moved elsewhere: some volumes keep times to two seconds only."""
        return state.st_size == self.size and abs(state.st_mtime_ns - self.mtime_ns) <= _COARSE_NS


@dataclass(frozen=True, slots=True)
class Counts:
    """``done``: maps published since the journal began. The others: how many are in that state now."""

    done: int
    failed: int
    in_flight: tuple[str, ...]


COLUMNS = (
    "id, inbox, key, rel, size, mtime_ns, state, attempts, interruptions, alone,"
    " attempt_at, ended_at, base, reason, filed, place"
)

ATTEMPT = """
INSERT INTO frames (inbox, key, rel, size, mtime_ns, state, attempts, interruptions, alone, attempt_at,
                    outbox, base, base_key)
VALUES (?, ?, ?, ?, ?, 'attempt', ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (inbox, key) DO UPDATE SET
    rel = excluded.rel, size = excluded.size, mtime_ns = excluded.mtime_ns, state = 'attempt',
    attempts = excluded.attempts, interruptions = excluded.interruptions, alone = excluded.alone,
    attempt_at = excluded.attempt_at, ended_at = NULL, outbox = excluded.outbox, base = excluded.base,
    base_key = excluded.base_key, reason = NULL, filed = 0, place = NULL,
    maps = CASE WHEN outbox = excluded.outbox AND base = excluded.base THEN maps END
RETURNING id
"""


THIS = "id = ? AND inbox = ? AND key = ?"


def mark_of(who: Frame | Row) -> tuple[int, bytes, bytes]:
    """What ``THIS`` asks for. A number alone is not enough: it is given again when the newest row has gone."""
    if isinstance(who, Row):
        return who.id, os.fsencode(who.inbox), os.fsencode(who.key)
    return who.id, os.fsencode(who.source.inbox), os.fsencode(who.source.key)


def base_key(base: str) -> bytes:
    """Two maps whose keys are equal may be one file in an outbox that knows neither case nor spelling."""
    return os.fsencode(unicodedata.normalize("NFC", base).casefold())


def row_of(values: tuple[Any, ...]) -> Row:
    (
        row_id,
        inbox,
        key,
        rel,
        size,
        mtime_ns,
        state,
        attempts,
        interruptions,
        alone,
        began,
        ended,
        base,
        reason,
        filed,
        place,
    ) = values
    texts = [os.fsdecode(value) for value in (inbox, key, rel, base)]
    return Row(
        id=row_id,
        inbox=Path(texts[0]),
        key=texts[1],
        rel=texts[2],
        size=size,
        mtime_ns=mtime_ns,
        state=state,
        attempts=attempts,
        interruptions=interruptions,
        alone=bool(alone),
        attempt_at=began,
        ended_at=ended,
        base=texts[3],
        reason=json.loads(reason) if reason else None,
        filed=bool(filed),
        place=os.fsdecode(place or b""),
    )
