"""Remove a file in steps that can be taken back: out of reach under its own name, looked at again, and then gone."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from watcher.durable.moving import move_aside, rename_new
from watcher.durable.syncing import sync_folder
from watcher.durable.writing import alive_elsewhere

# A folder, so that the file in it keeps its name whole: whoever finds it after a crash knows whose it was.
_OUT_OF_REACH = re.compile(r"^\.leaving-(\d+)-\d+$")
_serial = itertools.count(1)


def out_of_reach(path: Path) -> Path:
    """Move ``path`` into a hidden folder of ours beside it; returns where. Raises ``OSError``."""
    hidden = path.parent / f".leaving-{os.getpid()}-{next(_serial)}"
    hidden.mkdir(mode=0o700)
    try:
        rename_new(path, hidden / path.name)
    except OSError:
        hidden.rmdir()
        raise
    return hidden / path.name


def remove(hidden: Path) -> None:
    """Remove what is out of reach, for good. Raises ``OSError``."""
    hidden.unlink()
    _close(hidden.parent)


def bring_back(hidden: Path) -> Path:
    """Put what is out of reach where it came from, beside what may have taken its name; returns where it is now."""
    target = move_aside(hidden, hidden.parent.parent, hidden.name)
    _close(hidden.parent)
    return target


def left_out_of_reach(folder: Path, *, recursive: bool) -> Iterator[Path]:
    """What processes that are no longer alive put out of reach below ``folder``, and did not remove."""
    for base, folders, _ in os.walk(folder):
        for name in [name for name in folders if _OUT_OF_REACH.match(name)]:
            match = _OUT_OF_REACH.match(name)
            folders.remove(name)
            if match and not alive_elsewhere(int(match.group(1))):
                hidden = Path(base, name)
                found = sorted(hidden.iterdir())
                yield from found
                if not found:
                    _close(hidden)
        if not recursive:
            folders.clear()


def _close(folder: Path) -> None:
    with contextlib.suppress(OSError):  # an empty hidden folder harms nobody, and the next start takes it away
        folder.rmdir()
    sync_folder(folder.parent)
