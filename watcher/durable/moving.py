"""Move a file without ever overwriting another one or being without it."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from watcher.durable.syncing import REFUSED, make_folder, sync_file, sync_folder
from watcher.durable.writing import NAME_BYTES, cut_to_bytes, temporary_name

_COPY_BYTES = 1 << 20


def numbered(name: str) -> Iterator[str]:
    """``a.jpg``, ``a (2).jpg``, ``a (3).jpg`` …, none longer than a name may be."""
    yield name
    stem, dot, extension = name.rpartition(".")
    if not stem:
        stem, dot, extension = name, "", ""
    for count in itertools.count(2):
        tail = f" ({count}){dot}{extension}"
        yield cut_to_bytes(stem, NAME_BYTES - len(os.fsencode(tail))) + tail


class Replaced(Exception):
    """Another content stands where the one that was to be moved had stood; it is there still."""


def move_aside(source: Path, folder: Path, name: str, content: tuple[int, int] | None = None) -> Path:
    """Move ``source`` into ``folder`` under ``name`` or the next free `` (n)``; never overwrites. Returns where.

    Across volumes the file is copied, synced and compared before the source is removed. ``content`` (size in bytes,
    time of the last change in ns): only that is moved, else ``Replaced`` is raised. It is looked for in the old place:
    a volume that keeps times less exactly gives the new one another time.
    """
    make_folder(folder)
    for candidate in numbered(name):
        target = folder / candidate
        try:
            rename_new(source, target)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return _copy_over(source, folder, name, content)
        if content is not None and _content(os.lstat(target)) != content:
            # Somebody dropped it between the last look and the rename: back to where it was, or beside what is there.
            move_aside(target, source.parent, source.name)
            raise Replaced(str(source))
        sync_folder(folder)
        sync_folder(source.parent)
        return target
    raise AssertionError("unreachable: the names never end")


def _content(state: os.stat_result) -> tuple[int, int]:
    return state.st_size, state.st_mtime_ns


def _copy_over(source: Path, folder: Path, name: str, content: tuple[int, int] | None) -> Path:
    temporary = folder / temporary_name(name)
    try:
        before = _copy(source, temporary)
        if content is not None and _content(before) != content:
            raise Replaced(str(source))
        target, is_new = _settle_copy(temporary, folder, name)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(folder)
    after = os.lstat(source)
    if (after.st_ino, after.st_size, after.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
        if is_new:
            target.unlink()
        raise OSError(errno.EBUSY, "the file changed while it was moved to another volume", str(source))
    source.unlink()
    sync_folder(source.parent)
    return target


def _settle_copy(temporary: Path, folder: Path, name: str) -> tuple[Path, bool]:
    """Give the copy its name; returns where it is and whether it was not there before.

    A kill between copying and removing the source leaves both: the copy that is there already then serves.
    """
    for candidate in numbered(name):
        target = folder / candidate
        try:
            rename_new(temporary, target)
        except FileExistsError:
            if not _is_copy(target, temporary):
                continue
            temporary.unlink()
            return target, False
        return target, True
    raise AssertionError("unreachable: the names never end")


def _copy(source: Path, target: Path) -> os.stat_result:
    """Copy bytes and times, synced and compared; returns the source's state when it was opened."""
    with open(source, "rb") as reading, open(target, "xb+") as writing:
        before = os.fstat(reading.fileno())
        while block := reading.read(_COPY_BYTES):
            writing.write(block)
        writing.flush()
        os.utime(writing.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fchmod(writing.fileno(), stat.S_IMODE(before.st_mode))
        sync_file(writing.fileno())
        reading.seek(0)
        writing.seek(0)
        while block := reading.read(_COPY_BYTES):
            if writing.read(len(block)) != block:
                raise OSError(errno.EIO, "the copy differs from its source", str(target))
        if writing.read(1):
            raise OSError(errno.EIO, "the copy is longer than its source", str(target))
    return before


def _is_copy(target: Path, temporary: Path) -> bool:
    """Whether ``target`` is a file with exactly the bytes and the time of ``temporary``."""
    one, other = os.lstat(target), os.lstat(temporary)
    if not stat.S_ISREG(one.st_mode) or (one.st_size, one.st_mtime_ns) != (other.st_size, other.st_mtime_ns):
        return False
    with open(target, "rb") as reading, open(temporary, "rb") as copy:
        while block := copy.read(_COPY_BYTES):
            if reading.read(len(block)) != block:
                return False
    return True


def rename_new(source: Path, target: Path) -> None:
    """Rename, failing with ``FileExistsError`` where the target exists: one step, no moment to lose a file in."""
    refused = _exclusive(os.fsencode(source), os.fsencode(target))
    if refused == 0:
        return
    if refused == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if refused not in REFUSED:
        raise OSError(refused, os.strerror(refused), str(source))
    if os.path.lexists(target):  # a volume that cannot do it in one step
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    os.rename(source, target)


_AT_FDCWD_LINUX = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCL = 4


def _exclusive(source: bytes, target: bytes) -> int:
    """0, or the errno of the system's own exclusive rename; ``ENOSYS`` where it has none."""
    import ctypes  # only a move needs it; what merely looks must answer at once

    library = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        result = library.renamex_np(source, target, _RENAME_EXCL)
    elif sys.platform != "darwin" and hasattr(library, "renameat2"):
        result = library.renameat2(_AT_FDCWD_LINUX, source, _AT_FDCWD_LINUX, target, _RENAME_NOREPLACE)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if result else 0
