"""Web: the local service. Its threads never touch the session: they hand pictures to the daemon and wait for maps.

Two fronts, one way in. Inside the daemon, waitress serves the application from threads (nothing forks). In processes
of its own, any server does, with any number of workers, forked or not: ``gunicorn 'watcher.web:create_app()'``. Those
hold no session and no journal, only a way to the daemon's socket in the state folder.

Importing this room loads neither flask nor waitress, nor anything that runs a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask


def create_app(config_file: str | Path | None = None) -> Flask:
    """The application for a server of your own, in processes of its own.

    Settings are found as for every verb (``config_file``, ``$DEPTH_WATCHER_CONFIG`` …). The daemon may start later:
    until it runs, requests are answered 503. Raises ``ConfigError``; ``UsageError`` where ``api.enabled`` is false.
    """
    from watcher import config
    from watcher.errors import UsageError
    from watcher.web.app import make_app
    from watcher.web.far import FarDoor
    from watcher.web.token import Token

    settings = config.load(config.find(Path(config_file) if config_file else None))
    if not settings.api.enabled:
        raise UsageError("the local service is switched off", "Set api: {enabled: true} and restart the daemon.")
    state_dir = config.state_dir(settings)
    return make_app(settings.api, FarDoor(state_dir), Token(state_dir), live=False)
