"""The names under which launchd and systemd know us, and where they keep them. Light: every verb may ask."""

from __future__ import annotations

import os
from pathlib import Path

LABEL = "io.depthwatcher.agent"
PLIST = f"{LABEL}.plist"
UNIT = "depth-watcher.service"


def under_launchd() -> bool:
    """Whether this process was started by launchd as our agent (it gives its jobs their own label)."""
    return os.environ.get("XPC_SERVICE_NAME") == LABEL


def under_systemd() -> bool:
    """Whether this process was started by systemd as our unit (it says so itself; a terminal may be a unit too)."""
    return os.environ.get("DEPTH_WATCHER_UNIT") == UNIT


def plist_file() -> Path:
    """Where the LaunchAgent of this user belongs."""
    return Path.home() / "Library" / "LaunchAgents" / PLIST


def unit_file() -> Path:
    """Where the unit of this user belongs."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / UNIT


def installed() -> bool:
    """Whether there is an agent to ask about at all."""
    return plist_file().exists() or unit_file().exists()
