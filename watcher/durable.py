"""Files that are whole or absent: write, move, sync and lock.

Nothing here decides what a file means. Errors of the operating system pass through as ``OSError``; whoever called
knows what they are worth.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import itertools
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

_F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone leaves data in the drive's cache
_REFUSED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENOTTY}
_COPY_BYTES = 1 << 20
_NAME_BYTES = 255
_TEMPORARY = re.compile(r"^\..+\.tmp-(\d+)-\d+$")
_serial = itertools.count(1)


# -- syncing ------------------------------------------------------------------------------------------------------


def sync_file(descriptor: int) -> None:
    """Make what was written survive a power cut. Falls back where a network volume refuses the strong form."""
    if _F_FULLFSYNC is not None:
        try:
            fcntl.fcntl(descriptor, _F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _REFUSED:
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


# -- writing ------------------------------------------------------------------------------------------------------


def temporary_name(name: str) -> str:
    """A hidden name beside ``name`` that tells which process is writing; never longer than a name may be."""
    suffix = f".tmp-{os.getpid()}-{next(_serial)}"
    room = _NAME_BYTES - len(suffix) - 1
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
    temporary = target.parent / temporary_name(target.name)
    try:
        write_new(temporary, data, mode=mode, durable=durable)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
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
            view = view[os.write(descriptor, view) :]
        if durable:
            sync_file(descriptor)
        _compare(descriptor, data, path)
    finally:
        os.close(descriptor)


def _compare(descriptor: int, data: bytes | memoryview, path: Path) -> None:
    """What is on disk must be what was meant; a disk that lies is found here and not by the user."""
    view = memoryview(data)
    if os.fstat(descriptor).st_size != len(view):
        raise OSError(errno.EIO, "the file on disk has another length than what was written", str(path))
    for start in range(0, len(view), _COPY_BYTES):
        if os.pread(descriptor, _COPY_BYTES, start) != view[start : start + _COPY_BYTES]:
            raise OSError(errno.EIO, "the file on disk differs from what was written", str(path))


def sweep(folder: Path, *, recursive: bool) -> int:
    """Remove the hidden files that a killed process left; returns how many. Those of living processes stay."""
    removed = 0
    for base, folders, names in os.walk(folder):
        if not recursive:
            folders.clear()
        for name in names:
            match = _TEMPORARY.match(name)
            if match and not _alive_elsewhere(int(match.group(1))):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(base, name))
                    removed += 1
    return removed


def _alive_elsewhere(pid: int) -> bool:
    if pid == os.getpid():
        return False  # a temporary of an earlier process that had our number
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# -- moving -------------------------------------------------------------------------------------------------------


def numbered(name: str) -> Iterator[str]:
    """``a.jpg``, ``a (2).jpg``, ``a (3).jpg`` …, none longer than a name may be."""
    yield name
    stem, dot, extension = name.rpartition(".")
    if not stem:
        stem, dot, extension = name, "", ""
    for count in itertools.count(2):
        tail = f" ({count}){dot}{extension}"
        yield cut_to_bytes(stem, _NAME_BYTES - len(os.fsencode(tail))) + tail


def move_aside(source: Path, folder: Path, name: str) -> Path:
    """Move ``source`` into ``folder`` under ``name`` or the next free `` (n)``; never overwrites. Returns where.

    Across volumes the file is copied, synced and compared before the source is removed.
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
            return _copy_over(source, folder, name)
        sync_folder(folder)
        sync_folder(source.parent)
        return target
    raise AssertionError("unreachable: the names never end")


def _copy_over(source: Path, folder: Path, name: str) -> Path:
    temporary = folder / temporary_name(name)
    try:
        before = _copy(source, temporary)
        for candidate in numbered(name):
            target = folder / candidate
            try:
                rename_new(temporary, target)
            except FileExistsError:
                continue
            break
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(folder)
    after = os.lstat(source)
    if (after.st_ino, after.st_size, after.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
        target.unlink()
        raise OSError(errno.EBUSY, "the file changed while it was moved to another volume", str(source))
    source.unlink()
    sync_folder(source.parent)
    return target


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


def rename_new(source: Path, target: Path) -> None:
    """Rename, failing with ``FileExistsError`` where the target exists: one step, no moment to lose a file in."""
    refused = _exclusive(os.fsencode(source), os.fsencode(target))
    if refused == 0:
        return
    if refused == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if refused not in _REFUSED:
        raise OSError(refused, os.strerror(refused), str(source))
    if os.path.lexists(target):  # a volume that cannot do it in one step
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    os.rename(source, target)


_AT_FDCWD_LINUX = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCL = 4


def _exclusive(source: bytes, target: bytes) -> int:
    """0, or the errno of the system's own exclusive rename; ``ENOSYS`` where it has none."""
    library = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        result = library.renamex_np(source, target, _RENAME_EXCL)
    elif sys.platform != "darwin" and hasattr(library, "renameat2"):
        result = library.renameat2(_AT_FDCWD_LINUX, source, _AT_FDCWD_LINUX, target, _RENAME_NOREPLACE)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if result else 0


# -- locking ------------------------------------------------------------------------------------------------------


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
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
                return False
            raise
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
