"""Compiled models: one folder for each combination that could matter, and none that was left half-made.

CoreML's own key is little more than the model's path, and a folder that exists counts as good, whatever is in it. So
the folder's name carries the model, the runtime, the options and the system, and a marker stands in it until the first
inference has succeeded.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from watcher import durable

_MARK = ".building"
_NAME = re.compile(r"[0-9a-f]{16}-.+")
_SYSTEM = Path("/System/Library/CoreServices/SystemVersion.plist")
_BUILD = re.compile(r"<key>ProductBuildVersion</key>\s*<string>([^<]+)</string>")
_KEPT = 4  # folders of other combinations: going back to yesterday's settings should be quick too


def system_build() -> str:
    """The system's build, as ``25B78`` on a Mac, else the kernel's release. Starts no process."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = _BUILD.search(_SYSTEM.read_text(encoding="utf-8"))
        if found:
            return found[1]
    return os.uname().release


def alive(pid: int) -> bool:
    """Whether another process of that number lives. Our own number in a file is an earlier process's."""
    if pid <= 0 or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Compiled:
    """The folder of one combination. Nothing here may end a start: without a cache CoreML is only slower."""

    def __init__(self, root: Path, parts: Sequence[str]) -> None:
        name = "-".join(re.sub(r"[^0-9A-Za-z._]", "_", part) for part in parts)
        self.folder = root / durable.cut_to_bytes(name, 200)
        self.used = False  # an earlier process made what lies there

    def begin(self) -> Path | None:
        """The folder, clean and marked; ``None`` where another process is building it, or the disk refuses."""
        mark = self.folder / _MARK
        self.used = False
        try:
            if mark.exists():
                if alive(_pid(mark)):
                    return None
                self.wipe()
            self._prune()
            self.used = self.folder.exists()
            if not self.used:
                self.folder.mkdir(parents=True)
                durable.write_whole(mark, str(os.getpid()).encode())
            os.utime(self.folder)
        except OSError:
            return None
        return self.folder

    def nearest(self) -> Path:
        """The folder, or the nearest one above it that is there."""
        return next(place for place in (self.folder, *self.folder.parents) if place.is_dir())

    def finished(self) -> bool:
        """Whether what lies there can be used, so that nothing has to be compiled."""
        return self.folder.is_dir() and not (self.folder / _MARK).exists()

    def good(self) -> None:
        """The first inference has succeeded: what lies there may be used again."""
        mark = self.folder / _MARK
        with contextlib.suppress(OSError):
            if _pid(mark) == os.getpid():
                mark.unlink()

    def wipe(self) -> bool:
        """Remove it; True when something was there."""
        there = self.folder.is_dir()
        shutil.rmtree(self.folder, ignore_errors=True)
        return there

    def _prune(self) -> None:
        """Keep the newest few; only folders that bear a name of ours, and none that somebody is building."""
        root = self.folder.parent
        if not root.is_dir():
            return
        others = [path for path in root.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
        others = [path for path in others if path != self.folder and not alive(_pid(path / _MARK))]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT:]:
            shutil.rmtree(path, ignore_errors=True)


def _pid(mark: Path) -> int:
    try:
        return int(mark.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
