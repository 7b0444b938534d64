"""Notices: short words for the person at the screen, left in a folder by the daemon and shown by a program of its own.

The daemon starts no process, and showing a notification needs one. So it only leaves small files; the system's manager
of services sees that the folder is not empty and starts `depth-watcher notify`, which shows and removes them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from watcher import durable
from watcher.clock import wall_s

FOLDER = "notices"  # below the state folder
MOST = 20  # files; what nobody shows must not grow
STALE_S = 3600.0  # older words surprise more than they help
_TEXT_MOST = 240
_ENDING = ".notice"
_serial = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Notice:
    """``title`` is ours; ``text`` may hold names of files, so anything. ``at_s``: seconds since 1970."""

    title: str
    text: str
    at_s: float


def leave(spool: Path, title: str, text: str) -> None:
    """Put one notice into the folder, whole; the oldest give way. Raises ``OSError``."""
    durable.make_folder(spool, 0o700)
    for old in _files(spool)[: -(MOST - 1)]:
        with contextlib.suppress(OSError):
            old.unlink()
    notice = Notice(plain(title), plain(text), wall_s())
    name = f"{int(notice.at_s * 1000):015d}-{os.getpid()}-{next(_serial):06d}{_ENDING}"
    durable.write_whole(spool / name, json.dumps(asdict(notice)).encode(), mode=0o600, durable=False)


def take(spool: Path) -> list[Notice]:
    """All notices that are worth showing, oldest first. They are gone from the folder, shown or not, readable or not.

    What stayed would make the system start the program again and again.
    """
    found = []
    for file in _files(spool):
        try:
            values = json.loads(file.read_bytes())
            notice = Notice(plain(str(values["title"])), plain(str(values["text"])), float(values["at_s"]))
        except (OSError, ValueError, TypeError, KeyError):
            notice = None
        with contextlib.suppress(OSError):
            file.unlink()
        if notice is not None and abs(wall_s() - notice.at_s) < STALE_S:
            found.append(notice)
    _clear(spool)
    return found


def _clear(spool: Path) -> None:
    """Hidden files: what a killed process left half, and what Finder notes. Whoever is alive goes on writing."""
    with contextlib.suppress(OSError):
        durable.sweep(spool, recursive=False)
        for name in os.listdir(spool):
            if name[0] == "." and not durable.is_temporary(name):
                (spool / name).unlink()


def plain(text: str) -> str:
    """One line of printable characters, cut to a length that a notification shows."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if len(line) <= _TEXT_MOST else line[: _TEXT_MOST - 1] + "…"


def _files(spool: Path) -> list[Path]:
    try:
        return sorted(spool / name for name in os.listdir(spool) if name.endswith(_ENDING) and name[0] != ".")
    except OSError:
        return []
