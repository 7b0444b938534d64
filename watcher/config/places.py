"""Where things are when nobody says otherwise: the configuration file, the state, the models, the log."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from watcher.config.paths import expand
from watcher.errors import ConfigError

if TYPE_CHECKING:
    from watcher.config.settings import Settings

VARIABLE = "DEPTH_WATCHER_CONFIG"
_NAME = "depth-watcher"
_MAC: bool = sys.platform == "darwin"


def find(explicit: Path | None = None) -> Path | None:
    """The configuration file to use, absolute, or ``None`` where there is none and the defaults hold.

    Order: ``explicit``, ``$DEPTH_WATCHER_CONFIG``, ``./config.yaml``, the user's configuration folder.
    Raises ``ConfigError`` when a file that was named (by the first two) is not there.
    """
    if explicit is not None:
        return _named(explicit, "--config")
    if named := os.environ.get(VARIABLE):
        return _named(Path(named), f"${VARIABLE}")
    for candidate in (Path("config.yaml"), user_file()):
        if candidate.is_file():
            return candidate.absolute()
    return None


def _named(path: Path, by: str) -> Path:
    try:
        path = expand(str(path).replace("$", "$$"), Path.cwd())
    except ValueError as error:
        raise ConfigError(f"{by} names {path}: {error}", "Give the path of a YAML file.") from None
    try:
        folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f"{by} names a file that is not there: {path}", "`depth-watcher config init` writes one."
        ) from None
    except OSError:
        return path  # whoever reads it says what stands in the way, and that it may be gone later
    if folder:
        raise ConfigError(f"{by} names a folder: {path}", f"Name the file in it, for example {path / 'config.yaml'}")
    return path


def user_file() -> Path:
    """``<user config folder>/depth-watcher/config.yaml``; on a Mac below ``~/Library/Application Support``."""
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False) / "config.yaml"


def state_dir(settings: Settings) -> Path:
    """Folder of the journal, the lock and the caches. It need not exist."""
    return settings.state_dir or default_state_dir()


def default_state_dir() -> Path:
    import platformdirs

    return platformdirs.user_data_path(_NAME, appauthor=False)


def locks_dir() -> Path:
    """Folder of the locks of inboxes: the same for every configuration of one user. It need not exist."""
    return default_state_dir() / "locks"


def models_dir(settings: Settings) -> Path:
    """Folder of pulled models. It need not exist."""
    return settings.model.dir or default_state_dir() / "models"


def log_file(settings: Settings) -> Path:
    """The log file: ``log.file``, or where the system's own log viewer looks. It need not exist."""
    if isinstance(settings.log.file, Path):
        return settings.log.file
    if _MAC:
        return Path.home() / "Library" / "Logs" / _NAME / f"{_NAME}.log"
    import platformdirs

    return platformdirs.user_log_path(_NAME, appauthor=False) / f"{_NAME}.log"


def default_text() -> str:
    """The commented configuration file that the program ships: every key with its default."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "data" / "config.yaml", package.parent / "config.yaml"):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ConfigError("The shipped config.yaml is missing", "Install depth-watcher again.")
