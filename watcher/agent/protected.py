"""Folders that macOS guards: a program that starts at login may be refused there, even without being asked."""

from __future__ import annotations

import sys
from pathlib import Path

from watcher.errors import privacy_clicks

_GUARDED = {
    "Desktop": "the Desktop",
    "Documents": "Documents",
    "Downloads": "Downloads",
    "Library/Mobile Documents": "iCloud Drive",
    "Library/CloudStorage": "a cloud drive",
    "Pictures/Photos Library.photoslibrary": "the Photos library",
}


def guarded(path: Path, home: Path | None = None) -> str:
    """What guarded place ``path`` lies in, in words; empty where it lies in none. Case does not matter on a Mac."""
    home = home or Path.home()
    parts = [part.casefold() for part in path.parts]
    for below, name in _GUARDED.items():
        place = [part.casefold() for part in (home / below).parts]
        if parts[: len(place)] == place:
            return name
    return "another volume" if parts[:2] == ["/", "volumes"] and len(parts) > 2 else ""


def clicks(program: Path | None = None) -> str:
    """What to click so that ``program`` (default: the Python that runs this) may read guarded folders."""
    return privacy_clicks(str(program or sys.executable))
