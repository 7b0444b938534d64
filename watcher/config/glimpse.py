"""A glimpse into the settings: the one value that a verb needs which only looks, without the whole check."""

from __future__ import annotations

from pathlib import Path

from watcher.config import reading
from watcher.config.paths import expand
from watcher.config.places import default_state_dir
from watcher.errors import ConfigError


def state_dir(path: Path | None) -> Path | None:
    """The state folder that a file names (``None``: no file), or ``None`` where only the whole check can tell."""
    if path is None:
        return default_state_dir()
    try:
        document = reading.read(path)
        named = document.data.get("state_dir")
        if document.problems or not isinstance(named, str | None):
            return None
        return default_state_dir() if named is None else expand(named, path.absolute().parent)
    except (ConfigError, ValueError):
        return None
