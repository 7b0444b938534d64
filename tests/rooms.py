"""Folders and settings for tests that need more than one room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from watcher import config
from watcher.folder import Folder


def settings(place: Path, **overrides: Any) -> config.Settings:
    """Settings whose folders and state all lie in ``place``; ``a__b`` stands for the key ``a.b``."""
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    return config.load(
        None,
        {
            "folders[0].inbox": str(place / "in"),
            "folders[0].outbox": str(place / "out"),
            "folders[0].processed": str(place / "processed"),
            "folders[0].failed": str(place / "failed"),
            "state_dir": str(place / "state"),
            **{key: value for key, value in given.items() if not key.startswith("folder.")},
            **{f"folders[0].{key[7:]}": value for key, value in given.items() if key.startswith("folder.")},
        },
    )


def folder(place: Path, **overrides: Any) -> Folder:
    """The one folder of ``settings``, with its inbox made."""
    made = Folder(0, settings(place, **overrides).folders[0], "fake")
    made.inbox.prepare()
    return made


def files(place: Path) -> list[str]:
    """Every file below ``place``, by its path from there."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir())
