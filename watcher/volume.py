"""Volumes: is a folder still on the disk where it was, and what can that disk do?"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys
from pathlib import Path

from watcher.durable import make_folder

_MAC: bool = sys.platform == "darwin"
NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR)
_MOUNTS = tuple(Path(name) for name in ("/Volumes", "/mnt", "/media", "/run/media"))


class Anchor:
    """Remembers which volume a folder is on, so that an empty mount point is never taken for the folder itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._outside: int | None = None  # the device that shows through when the volume is gone
        self._seen = False

    def create(self) -> None:
        """Create the folder where it is missing, but never on the mount point of an absent volume.

        One that was there and was thrown away is made again. Raises ``OSError``: ``ENXIO`` where the volume is not
        there.
        """
        missing = self.folder if self._is_away() else absent(self.folder)
        if missing is not None:
            raise OSError(errno.ENXIO, "the volume is not mounted", str(missing))
        if not self.folder.is_dir():
            make_folder(self.folder)
        self.check()

    def _is_away(self) -> bool:
        """Whether what is left of the path lies on the disk that shows through an absent volume."""
        if self._outside is None:
            return False
        step = Path(os.path.realpath(self.folder))
        while not os.path.lexists(step):
            step = step.parent
        return os.stat(step).st_dev == self._outside

    def check(self) -> None:
        """Raises ``OSError`` where the folder is missing or its volume was unmounted."""
        device = os.stat(self.folder).st_dev
        if not self._seen:
            self._outside = _device_outside(self.folder, device)
            self._seen = True
        elif self._outside is not None and device == self._outside:
            raise OSError(errno.ENXIO, "the volume is not mounted", str(self.folder))


def _device_outside(folder: Path, device: int) -> int | None:
    """The device just above the mount point of ``folder``; ``None`` on the root volume."""
    step = Path(os.path.realpath(folder))
    while step != step.parent:
        step = step.parent
        above = os.stat(step).st_dev
        if above != device:
            return above
    return None


def state_of(path: Path | str) -> os.stat_result | None:
    """What lies there, a link not followed; ``None`` only where nothing has that name.

    Raises ``OSError`` where the volume says anything else: what cannot be looked at is not absent. Whoever concludes
    something from ``None`` asks the ``Anchor`` afterwards, for an empty mount point has no names either.
    """
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in NOTHING_THERE:
            return None
        raise


def absent(folder: Path) -> Path | None:
    """The mount point that ``folder`` would need and that nothing is mounted on; ``None`` where all is well.

    Root may write on an empty mount point: what is there says nothing about the volume.
    """
    for mounts in _MOUNTS:
        if folder.is_relative_to(mounts) and folder != mounts:
            point = mounts / folder.relative_to(mounts).parts[0]
            if mounts.name == "media" and len(folder.relative_to(mounts).parts) > 1 and not os.path.ismount(point):
                point = point / folder.relative_to(mounts).parts[1]  # /media/<user>/<volume>
            if not folder.is_dir() and not os.path.ismount(point):
                return point
    return None


def ignores_case(folder: Path) -> bool:
    """Whether names that differ only in case are one file there. Asks without writing; unsure means no."""
    step = folder
    while step != step.parent:
        other = step.with_name(step.name.swapcase())
        if other.name != step.name:
            try:
                return os.path.samestat(os.stat(step), os.stat(other))
            except OSError:
                return False
        step = step.parent
    return False


def same_volume(one: Path, other: Path) -> bool:
    """Whether two folders lie on one volume; one that is not there lies nowhere, which counts as yes."""
    try:
        return os.stat(one).st_dev == os.stat(other).st_dev
    except OSError:
        return True


def is_there(path: Path) -> bool:
    """Whether anything has that name, be it a link that leads nowhere. Raises ``OSError`` where that cannot be told."""
    return state_of(path) is not None


def free_bytes(folder: Path) -> int:
    """Bytes that may still be written on the volume of ``folder``. Raises ``OSError``."""
    numbers = os.statvfs(folder)
    return numbers.f_bavail * numbers.f_frsize


_NETWORK_TYPES = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afpfs",
        "afs",
        "9p",
        "ceph",
        "glusterfs",
        "davfs",
        "fuse.sshfs",
        "fuse.rclone",
    )
)
_ESCAPED = re.compile(r"\\([0-7]{3})")  # blanks and the like in /proc/self/mountinfo
_MNT_LOCAL = 0x1000
_DARWIN_FLAGS_AT = 64  # struct statfs with 64-bit inodes: f_flags
_DARWIN_STATFS_BYTES = 2168


def is_network(folder: Path) -> bool:
    """Whether the folder lies on a network volume, where changes by other machines raise no events."""
    try:
        if _MAC:
            return not _darwin_flags(folder) & _MNT_LOCAL
        return _linux_type(Path(os.path.realpath(folder))) in _NETWORK_TYPES
    except OSError:
        return False


def _darwin_flags(folder: Path) -> int:
    buffer = ctypes.create_string_buffer(_DARWIN_STATFS_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    if library.statfs(os.fsencode(folder), buffer):
        raise OSError(ctypes.get_errno(), "statfs failed", str(folder))
    return int.from_bytes(buffer.raw[_DARWIN_FLAGS_AT : _DARWIN_FLAGS_AT + 4], sys.byteorder)


def _linux_type(folder: Path) -> str:
    """The file system type of the innermost mount that holds ``folder`` (proc(5), mountinfo)."""
    best, kind = "", ""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            left, _, right = line.partition(" - ")
            point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), left.split()[4])
            if folder.is_relative_to(point) and len(point) >= len(best):
                best, kind = point, right.split()[0]
    return kind


def same_file(one: Path, other: Path) -> bool:
    """Whether two names, links not followed, are one file; False where either cannot be looked at."""
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False
