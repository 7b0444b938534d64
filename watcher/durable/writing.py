"""Write a file whole or not at all; remove what a killed process left half."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

from watcher.durable.syncing import sync_file, sync_folder

NAME_BYTES = 255
_COMPARE_BYTES = 1 << 20
# Asked to take megabytes at once, Linux looks for as large pieces of memory to keep them in, and may have to make them:
# a map of 1080p cost 4.7 ms of processor to write, and 1.2 in pieces (docs/performance.md).
_WRITE_BYTES = 1 << 18
_TEMPORARY = re.compile(r"^\..+\.tmp-(\d+)-\d+$", re.DOTALL)
_serial = itertools.count(1)


def temporary_name(name: str) -> str:
    """A hidden name beside ``name`` that tells which process is writing; never longer than a name may be."""
    suffix = f".tmp-{os.getpid()}-{next(_serial)}"
    room = NAME_BYTES - len(suffix) - 1
    return f".{cut_to_bytes(name, room)}{suffix}"


def cut_to_bytes(name: str, room: int) -> str:
    """The longest beginning of ``name`` that fits into ``room`` bytes, cut between characters."""
    while len(os.fsencode(name)) > room:
        name = name[:-1]
    return name


def is_temporary(name: str) -> bool:
    return _TEMPORARY.match(name) is not None


def write_whole(target: Path, data: bytes | memoryview, *, mode: int = 0o644, durable: bool = True) -> None:
    """Put ``data`` under ``target``, whole or not at all, replacing what was there.

    Written under a hidden name, synced, compared byte for byte with what is on disk, renamed, folder synced.
    ``durable=False`` leaves out the syncing, for files that may be lost but never half (the status file).
    Raises ``OSError``; the hidden file is gone then.
    """
    put_whole(target, data, os.replace, mode=mode, durable=durable)


def put_whole(
    target: Path,
    data: bytes | memoryview,
    rename: Callable[[Path, Path], None],
    *,
    mode: int = 0o644,
    durable: bool = True,
) -> None:
    """As ``write_whole``; ``rename`` gives it its name, or refuses."""
    temporary = target.parent / temporary_name(target.name)
    try:
        write_new(temporary, data, mode=mode, durable=durable)
        rename(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(target), None  # nobody has heard of the hidden name
        raise
    if durable:
        sync_folder(target.parent)


def write_new(path: Path, data: bytes | memoryview, *, mode: int = 0o644, durable: bool = True) -> None:
    """Create ``path`` with ``data``, synced and compared. Raises ``FileExistsError`` rather than touch a file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view[:_WRITE_BYTES]) :]
        if durable:
            sync_file(descriptor)
        _compare(descriptor, data, path)
    finally:
        os.close(descriptor)


def _compare(descriptor: int, data: bytes | memoryview, path: Path) -> None:
    """What is on disk must be what was meant; a disk that lies is found here and not by the user."""
    meant = bytes(data)  # no copy where they are bytes already; memoryviews would be compared item by item
    if os.fstat(descriptor).st_size != len(meant):
        raise OSError(errno.EIO, "the file on disk has another length than what was written", str(path))
    for start in range(0, len(meant), _COMPARE_BYTES):
        found = os.pread(descriptor, _COMPARE_BYTES, start)
        if len(found) != min(_COMPARE_BYTES, len(meant) - start) or not meant.startswith(found, start):
            raise OSError(errno.EIO, "the file on disk differs from what was written", str(path))


def sweep(folder: Path, *, recursive: bool) -> int:
    """Remove the hidden files that a killed process left; returns how many. Those of living processes stay."""
    removed = 0
    for base, folders, names in os.walk(folder):
        if not recursive:
            folders.clear()
        for name in names:
            match = _TEMPORARY.match(name)
            if match and not alive_elsewhere(int(match.group(1))):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(base, name))
                    removed += 1
    return removed


def alive_elsewhere(pid: int) -> bool:
    """Whether another process than this one has the number ``pid`` now."""
    if pid == os.getpid():
        return False  # a temporary of an earlier process that had our number
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
