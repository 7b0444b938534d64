"""Instance: the one process for a state folder and its inboxes, and the trace it leaves if it crashes."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from watcher import config, durable, recovery, status
from watcher.errors import AnotherInstance
from watcher.inbox import lock_name


@contextmanager
def alone(state_dir: Path, inboxes: Sequence[Path], note: str) -> Iterator[None]:
    """Hold the locks of the state folder and of every inbox. Raises ``AnotherInstance`` that names the holder.

    The locks of inboxes lie in the user's data folder, whatever the state folder is: two configurations must not
    share an inbox, and network volumes may not know locks.
    """
    locks = [durable.Lock(state_dir / status.LOCK_FILE)]
    locks += [durable.Lock(config.locks_dir() / lock_name(inbox)) for inbox in inboxes]
    try:
        for lock in locks:
            if not lock.take(note):
                raise _another(lock.path)
        yield
    finally:
        for lock in locks:
            lock.give_back()


def _another(lock: Path) -> AnotherInstance:
    holder = durable.holder(lock) or "unknown"
    return AnotherInstance(
        f"another depth-watcher is at work on this state folder or inbox (process {holder})",
        "`depth-watcher status` shows it. Stop it first, or give this one folders and a state_dir of its own.",
    )


@contextmanager
def crash_trace(state_dir: Path) -> Iterator[None]:
    """If the process dies in native code, say so to the next start: it then knows that a frame may be to blame."""
    with open(state_dir / recovery.CRASH_FILE, "a", encoding="utf-8") as file:
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()
