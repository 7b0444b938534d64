"""Comeback: a picture from quarantine, as if it had never been tried. For the command line and for the status page."""

from __future__ import annotations

from pathlib import Path

from watcher.inbox import Inbox
from watcher.journal import JOURNAL_FILE, Journal
from watcher.quarantine import Case, Quarantine


def bring_back(state_dir: Path, room: Quarantine, case: Case) -> Path:
    """Where it is now. First the journal, then the file: a daemon that sees the file must not know it as failed.

    Raises ``OSError``.
    """
    path = state_dir / JOURNAL_FILE
    if path.exists():
        journal = Journal(path)
        try:
            for key in set(Inbox(case.inbox, recursive=True).keys(case.rel)):
                journal.let_go(case.inbox, key, str(case.path))
        finally:
            journal.close()
    return room.release(case)
