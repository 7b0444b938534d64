"""Locks that end with their process."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from watcher import clock
from watcher.durable.syncing import make_folder

_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
# Whoever asks `holder` has the lock for a moment; that must not keep a daemon from starting.
_TRIES = 5
_PAUSE_S = 0.02


class Lock:
    """A lock that the system gives back when its process ends, however it ends. Says who holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self, note: str) -> bool:
        """Take the lock and leave ``note`` in it; False where another process holds it."""
        make_folder(self.path.parent)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            taken = _take(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        if not taken:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode(), 0)
        self._descriptor = descriptor
        return True

    def give_back(self) -> None:
        """Release; harmless when not held. The file stays: removing it would let two processes hold 'the' lock."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _take(descriptor: int) -> bool:
    for again in range(_TRIES):
        if again:
            clock.pause(_PAUSE_S)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                raise
        else:
            return True
    return False


def holder(path: Path) -> str | None:
    """The note of whoever holds the lock, ``None`` where nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 4096, 0).decode(errors="replace")
    else:
        return None
    finally:
        os.close(descriptor)
