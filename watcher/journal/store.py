"""The journal's file: opened for safety, written in whole transactions, waited for when its disk is away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watcher.journal.patience import Patience, patiently
from watcher.journal.rows import SCHEMA, VERSION

JOURNAL_FILE = "journal.db"  # in the state folder


class Store:
    def __init__(self, path: Path, patience: Patience | None = None) -> None:
        """``patience``: what to do while the disk of the journal is full or away. Raises ``VolumeTrouble`` without."""
        self.path = path
        self.patience = patience
        self._db = self._open()

    @patiently
    def _open(self) -> sqlite3.Connection:
        opened = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            opened.execute("PRAGMA journal_mode=WAL")
            # FULL: what was said before acting must still be said after a power cut.
            opened.execute("PRAGMA synchronous=FULL")
            opened.execute("PRAGMA fullfsync=1")
            opened.execute("PRAGMA checkpoint_fullfsync=1")
        except BaseException:
            opened.close()
            raise
        return opened

    @patiently
    def create(self) -> None:
        """Lay out the tables; once, before any other thread opens the journal."""
        self._db.executescript(SCHEMA)
        self._db.execute(f"PRAGMA user_version={VERSION}")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has rolled back by itself
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
