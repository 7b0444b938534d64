"""Claims: an attempt is written down before it begins, together with the name that its map will have."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from watcher.clock import wall_s
from watcher.frame import Frame, Source
from watcher.journal.line import Line
from watcher.journal.patience import patiently
from watcher.journal.rows import ATTEMPT, COLUMNS, THIS, Row, base_key, mark_of, row_of

# How many of the names that a map may have are looked through for the one that it had.
_NAMES_TRIED = 50


class Claims(Line):
    @patiently
    def find(self, inbox: Path, key: str) -> Row | None:
        """What is known of a source."""
        return self._find(inbox, key)

    def _find(self, inbox: Path, key: str) -> Row | None:
        found = self._db.execute(
            f"SELECT {COLUMNS} FROM frames WHERE inbox = ? AND key = ?", (os.fsencode(inbox), os.fsencode(key))
        ).fetchone()
        return row_of(found) if found else None

    def attempt(
        self, source: Source, outbox: Path, bases: Iterable[str], taken: Callable[[str], bool], *, alone: bool = False
    ) -> tuple[int, str, int]:
        """Write down an attempt before it begins; returns (id, base, which attempt this is).

        The map's name is claimed in the same step: the source's own of an earlier time, else the first of ``bases``
        that no other source owns and that is not ``taken`` in the outbox by a file of unknown origin. That is asked
        while nothing is locked, for the outbox's volume may take its time.
        New content starts with no attempts behind it.
        """
        for base, own in self._names(source, outbox, bases):
            if not own and (self._owned(outbox, base) or taken(base)):
                continue
            begun = self._begin(source, outbox, base, alone=alone)
            if begun is not None:
                return begun
        raise AssertionError("unreachable: the names never end")

    @patiently
    def claimed(self, frame: Frame) -> tuple[str, bool]:
        """(the name that the frame's map has claimed, whether an earlier map of its source has that name already)."""
        found = self._db.execute(f"SELECT base, maps IS NOT NULL FROM frames WHERE {THIS}", mark_of(frame)).fetchone()
        return (os.fsdecode(found[0]), bool(found[1])) if found else (frame.base, False)

    def rename(self, frame: Frame, outbox: Path, bases: Iterable[str], taken: Callable[[str], bool]) -> str:
        """Claim another name for the map of a frame in work, where a file of another origin has the one it had."""
        for base in bases:
            if not self._owned(outbox, base) and not taken(base) and self._rename(frame, outbox, base):
                return base
        raise AssertionError("unreachable: the names never end")

    @patiently
    def _rename(self, frame: Frame, outbox: Path, base: str) -> bool:
        """False where another source has claimed the name since it was looked at."""
        with self._writing():
            if self._owner(outbox, base) is not None:
                return False
            self._db.execute(
                f"UPDATE frames SET base = ?, base_key = ? WHERE {THIS} AND state = 'attempt'",
                (os.fsencode(base), base_key(base), *mark_of(frame)),
            )
        return True

    def _names(self, source: Source, outbox: Path, bases: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """(a name, whether it is that of the earlier map, which a newer one replaces instead of standing beside it)."""
        names = iter(bases)
        first: list[str] = []
        own = self._own_base(source, outbox)
        if own is not None:
            first = list(itertools.islice(names, _NAMES_TRIED))
            if base_key(own) in map(base_key, first):
                yield own, True
        for base in itertools.chain(first, names):
            yield base, False

    @patiently
    def _own_base(self, source: Source, outbox: Path) -> str | None:
        found = self._db.execute(
            "SELECT base FROM frames WHERE inbox = ? AND key = ? AND outbox = ?",
            (os.fsencode(source.inbox), os.fsencode(source.key), os.fsencode(outbox)),
        ).fetchone()
        return os.fsdecode(found[0]) if found else None

    @patiently
    def _owned(self, outbox: Path, base: str) -> bool:
        return self._owner(outbox, base) is not None

    def _owner(self, outbox: Path, base: str) -> int | None:
        found = self._db.execute(
            "SELECT id FROM frames WHERE outbox = ? AND base_key = ?", (os.fsencode(outbox), base_key(base))
        ).fetchone()
        return None if found is None else int(found[0])

    @patiently
    def _begin(self, source: Source, outbox: Path, base: str, *, alone: bool) -> tuple[int, str, int] | None:
        """``None`` where another source has claimed the name since it was looked at."""
        now = wall_s()
        with self._writing():
            known = self._find(source.inbox, source.key)
            owner = self._owner(outbox, base)
            if owner is not None and (known is None or owner != known.id):
                return None
            again = known is not None and known.same_content(source.identity) and known.state != "done"
            attempts = (known.attempts if known and again else 0) + 1
            interruptions = known.interruptions if known and again else 0
            row_id: int = self._db.execute(
                ATTEMPT,
                (
                    os.fsencode(source.inbox),
                    os.fsencode(source.key),
                    os.fsencode(source.rel),
                    *source.identity.content,
                    attempts,
                    interruptions,
                    int(alone),
                    now,
                    os.fsencode(outbox),
                    os.fsencode(base),
                    base_key(base),
                ),
            ).fetchone()[0]
        return row_id, base, attempts
