"""The journal: what was tried, how it ended, and which map belongs to which source. SQLite, written before acting.

One row for each source (inbox, key). Its ``state``:

``attempt``  in work since ``attempt_at``; found at start it means that the process died with it in hand
``held``     truncated when last tried; waits for its file to change
``done``     its map is durable in the outbox
``failed``   given up; the source is in quarantine, or on its way there while ``filed`` is 0

A row also owns its map's name (outbox, base), so that a map is only ever replaced by a newer map of its own source.
Each thread opens a journal of its own; SQLite lets one of them write at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from watcher.clock import wall_s
from watcher.frame import Frame
from watcher.journal.claims import Claims
from watcher.journal.line import Place
from watcher.journal.patience import Patience, patiently
from watcher.journal.rows import COLUMNS, HISTORY_ROWS, THIS, Counts, Row, mark_of, row_of
from watcher.journal.store import JOURNAL_FILE

__all__ = ["JOURNAL_FILE", "Counts", "Journal", "Patience", "Place", "Row"]

_PAGE = 1000


class Journal(Claims):
    """A connection of one thread. ``patience`` as in ``Store``."""

    def __init__(self, path: Path, patience: Patience | None = None) -> None:
        super().__init__(path, patience)
        self._kept = 0  # of the oldest rows, how many were found to be still in their inbox

    # -- looking --------------------------------------------------------------------------------------------------

    @patiently
    def in_state(self, state: str) -> list[Row]:
        rows = self._db.execute(f"SELECT {COLUMNS} FROM frames WHERE state = ? ORDER BY attempt_at, id", (state,))
        return [row_of(row) for row in rows]

    @patiently
    def unfiled(self) -> list[Row]:
        """Failed sources of which nobody has written down where in quarantine they are."""
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM frames WHERE state = 'failed' AND (NOT filed OR length(coalesce(place, '')) = 0)"
        )
        return [row_of(row) for row in rows]

    def kept(self, inbox: Path) -> Iterator[tuple[str, tuple[int, int]]]:
        """(key, content) of every source of ``inbox`` whose map is done, a page at a time, however many they are."""
        last = 0
        while page := self._kept_after(inbox, last):
            last = page[-1][0]
            for _, key, size, mtime_ns in page:
                yield os.fsdecode(key), (size, mtime_ns)

    @patiently
    def _kept_after(self, inbox: Path, last: int) -> list[tuple[int, bytes, int, int]]:
        return self._db.execute(
            "SELECT id, key, size, mtime_ns FROM frames WHERE id > ? AND inbox = ? AND state = 'done' AND size >= 0"
            " ORDER BY id LIMIT ?",
            (last, os.fsencode(inbox), _PAGE),
        ).fetchall()

    @patiently
    def counts(self) -> Counts:
        done = self._db.execute("SELECT value FROM totals WHERE name = 'done'").fetchone()[0]
        failed = self._db.execute("SELECT count(*) FROM frames WHERE state = 'failed'").fetchone()[0]
        names = self._db.execute("SELECT rel FROM frames WHERE state = 'attempt' ORDER BY attempt_at, id LIMIT 1000")
        return Counts(done, failed, tuple(os.fsdecode(rel) for (rel,) in names))

    @patiently
    def last_failures(self, most: int = 10) -> list[Row]:
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM frames WHERE state = 'failed' ORDER BY ended_at DESC LIMIT ?", (most,)
        )
        return [row_of(row) for row in rows]

    @patiently
    def last_done(self, most: int = 12) -> list[tuple[Row, list[str]]]:
        """The last sources that became maps, newest first, and the files that each gave, the map first."""
        rows = self._db.execute(
            f"SELECT {COLUMNS}, maps FROM frames WHERE state = 'done' AND size >= 0 ORDER BY ended_at DESC LIMIT ?",
            (most,),
        )
        return [(row_of(row[:-1]), json.loads(row[-1] or "[]")) for row in rows]

    # -- writing --------------------------------------------------------------------------------------------------

    @patiently
    def done(self, frame: Frame, maps: Iterable[str]) -> None:
        """The map is durable. Written before the source is disposed of."""
        with self._writing():
            changed = self._db.execute(
                "UPDATE frames SET state = 'done', ended_at = ?, maps = ?, attempts = 0, interruptions = 0"
                f" WHERE {THIS} AND state = 'attempt'",
                (wall_s(), json.dumps(list(maps)), *mark_of(frame)),
            ).rowcount
            self._db.execute("UPDATE totals SET value = value + ? WHERE name = 'done'", (changed,))
            self._out_of_line(frame.source.inbox, frame.source.key)

    @patiently
    def fail(self, who: Frame | Row, reason: dict[str, Any]) -> None:
        """Give up on a frame. Its source still has to be put into quarantine (``filed``)."""
        with self._writing():
            changed = self._db.execute(
                f"UPDATE frames SET state = 'failed', ended_at = ?, reason = ?, filed = 0 WHERE {THIS}",
                (wall_s(), json.dumps(reason), *mark_of(who)),
            ).rowcount
            if changed:
                self._db.execute("DELETE FROM line WHERE inbox = ? AND key = ?", mark_of(who)[1:])

    @patiently
    def filed(self, who: Frame | Row, place: str) -> None:
        """The source is in quarantine, as ``place``."""
        self._db.execute(
            f"UPDATE frames SET filed = 1, place = ? WHERE {THIS} AND state = 'failed'",
            (os.fsencode(place), *mark_of(who)),
        )

    @patiently
    def hold(self, frame: Frame, reason: dict[str, Any]) -> None:
        """Truncated: it waits for the rest. Not counted as an attempt."""
        with self._writing():
            self._end_uncounted(frame, "held", reason)
            self._out_of_line(frame.source.inbox, frame.source.key)

    @patiently
    def give_back(self, who: Frame | Row) -> None:
        """The attempt was nobody's fault: as if it had not been made. The source is still in the inbox."""
        with self._writing():
            self._undo(who)

    def _undo(self, who: Frame | Row) -> None:
        found = self._db.execute(
            f"SELECT attempts, interruptions, maps, alone FROM frames WHERE {THIS} AND state = 'attempt'", mark_of(who)
        ).fetchone()
        if found is None:
            return
        attempts, interruptions, maps, alone = found
        if attempts > 1 or interruptions:
            self._end_uncounted(who, "held", {"code": "suspect"} if alone else None)
        elif maps is not None:
            self._disown(who.id)
        else:
            self._db.execute("DELETE FROM frames WHERE id = ?", (who.id,))

    def _disown(self, row_id: int) -> None:
        """Only the ownership of an earlier map is left of the row: no content equals a size of -1."""
        self._db.execute(
            "UPDATE frames SET state = 'done', size = -1, attempts = 0, interruptions = 0, reason = NULL, place = NULL"
            " WHERE id = ?",
            (row_id,),
        )

    def _end_uncounted(self, who: Frame | Row, state: str, reason: dict[str, Any] | None) -> None:
        self._db.execute(
            "UPDATE frames SET state = ?, reason = ?, attempts = max(attempts - 1, 0), ended_at = ?"
            f" WHERE {THIS} AND state = 'attempt'",
            (state, json.dumps(reason) if reason else None, wall_s(), *mark_of(who)),
        )

    @patiently
    def interrupted(self, who: Frame | Row) -> None:
        """The process was ended from outside while this frame was in hand: noted, not counted as its fault."""
        self._db.execute(
            "UPDATE frames SET interruptions = interruptions + 1, attempts = max(attempts - 1, 0)"
            f" WHERE {THIS} AND state = 'attempt'",
            mark_of(who),
        )

    @patiently
    def suspect(self, who: Frame | Row, maps: Iterable[str] = ()) -> None:
        """It was in hand when the process died: it runs again, alone. Its attempts stay counted.

        ``maps``: what it had published, which nobody has written down.
        """
        made = list(maps)
        self._db.execute(
            "UPDATE frames SET state = 'held', reason = ?, ended_at = ?, maps = coalesce(?, maps)"
            f" WHERE {THIS} AND state = 'attempt'",
            (json.dumps({"code": "suspect"}), wall_s(), json.dumps(made) if made else None, *mark_of(who)),
        )

    @patiently
    def forget(self, inbox: Path, key: str, state: str) -> None:
        """The source is gone, or as good as new. A map of earlier content keeps its owner.

        Only while its row is in ``state``, of those that are not done: what another content of that name has come to
        meanwhile is not forgotten with it.
        """
        with self._writing():
            known = self._find(inbox, key)
            self._out_of_line(inbox, key)
            if known is not None and known.state == state != "done":
                self._forget(mark_of(known), state)

    @patiently
    def let_go(self, inbox: Path, key: str, place: str) -> None:
        """The source that failed and lies in quarantine as ``place`` comes back, as if it had never been tried.

        Whatever else is known under its name, by now in work, held or in quarantine as well, stays known.
        """
        with self._writing():
            known = self._find(inbox, key)
            if known is not None and known.state == "failed" and (not known.filed or known.place == place):
                self._forget(mark_of(known), "failed")

    @patiently
    def prune(self, gone: Callable[[Path, str], bool], rows: int = HISTORY_ROWS, batch: int = 1000) -> int:
        """Drop the oldest finished rows beyond ``rows`` whose source is ``gone``; returns how many.

        A source that is still in its inbox (``after: keep``) must stay known, or it would be done again.
        """
        finished = self._db.execute("SELECT count(*) FROM frames WHERE state = 'done'").fetchone()[0]
        if self._kept >= finished - rows:
            self._kept = 0
        oldest = self._db.execute(
            "SELECT id, inbox, rel FROM frames WHERE state = 'done' ORDER BY ended_at LIMIT ? OFFSET ?",
            (max(0, min(batch, finished - rows - self._kept)), self._kept),
        ).fetchall()
        drop = [(row_id,) for row_id, inbox, rel in oldest if gone(Path(os.fsdecode(inbox)), os.fsdecode(rel))]
        self._kept += len(oldest) - len(drop)
        if drop:
            with self._writing():
                self._db.executemany("DELETE FROM frames WHERE id = ? AND state = 'done'", drop)
        return len(drop)

    @patiently
    def tidy(self, gone: Callable[[Path, str], bool]) -> int:
        """Forget held sources that are ``gone``, and failed ones that were taken out of quarantine; returns how many.

        What a folder that is away holds is not known to be gone. A map of earlier content keeps its owner.
        """
        lost = []
        rows = self._db.execute(
            "SELECT id, inbox, key, state, rel, place, reason FROM frames"
            " WHERE state = 'held' OR (state = 'failed' AND filed)"
        )
        for row_id, inbox, key, state, rel, place, reason in rows:
            if state == "failed":
                taken = bool(place) and os.path.isdir(os.path.dirname(place)) and not os.path.lexists(place)
            else:
                kept = reason is not None and json.loads(reason).get("code") == "shot"
                taken = not kept and gone(Path(os.fsdecode(inbox)), os.fsdecode(rel))
            if taken:
                lost.append(((row_id, inbox, key), state))
        if lost:
            with self._writing():
                for mark, state in lost:
                    self._forget(mark, state)
        return len(lost)

    def _forget(self, mark: tuple[int, bytes, bytes], state: str) -> None:
        found = self._db.execute(f"SELECT maps FROM frames WHERE {THIS} AND state = ?", (*mark, state)).fetchone()
        if found is not None and found[0] is not None:
            self._disown(mark[0])
        elif found is not None:
            self._db.execute("DELETE FROM frames WHERE id = ?", mark[:1])
