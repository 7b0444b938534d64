"""What survives a power cut: files, and the names of files in their folders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

_F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone leaves data in the drive's cache
# What a volume says to an operation that it does not know.
REFUSED = frozenset((errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENOTTY))


def sync_file(descriptor: int) -> None:
    """Make what was written survive a power cut. Falls back where a network volume refuses the strong form."""
    if _F_FULLFSYNC is not None:
        try:
            fcntl.fcntl(descriptor, _F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in REFUSED:
                raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in REFUSED:
            raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents, each durable in its own parent."""
    missing = []
    step = folder
    while not step.is_dir() and step != step.parent:
        missing.append(step)
        step = step.parent
    for step in reversed(missing):
        with contextlib.suppress(FileExistsError):
            step.mkdir(mode)
        sync_folder(step.parent)
