"""Which Python the agent starts: one whose path outlives the next upgrade."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from watcher.errors import UsageError

_CELLAR = re.compile(r"^(?P<prefix>.*)/Cellar/(?P<formula>python@[\d.]+)/[^/]+/(?P<rest>.+)$")
_ORIGINS = (
    ("/Library/Developer/CommandLineTools/", "Apple's command line tools"),
    ("/Applications/Xcode.app/", "Apple's Xcode"),
    ("/Cellar/", "Homebrew"),
    ("/Library/Frameworks/Python.framework/", "python.org"),
    ("/uv/python/", "uv"),
    ("/.pyenv/", "pyenv"),
    ("conda", "conda"),
    ("/opt/local/", "MacPorts"),
)
_APPLE = ("/usr/bin/python3", "/Library/Developer/CommandLineTools/", "/Applications/Xcode.app/")


def python_for_plist(executable: str | None = None) -> Path:
    """The running Python as it was called, links kept: a link outlives what it points to.

    Homebrew's ``Cellar/python@3.x/3.x.y/`` goes away at the next patch; ``opt/python@3.x/`` stays. Raises
    ``UsageError`` for Apple's own Python and where Python does not know its path.
    """
    found = sys.executable if executable is None else executable
    if not found:
        raise UsageError("Python does not know its own path", "Call depth-watcher by its full path.")
    if found.startswith(_APPLE):
        raise UsageError(f"{found} belongs to Apple's tools", "Install Python 3.11 or newer and depth-watcher with it.")
    match = _CELLAR.match(found)
    if match:
        stable = Path(match["prefix"]) / "opt" / match["formula"] / match["rest"]
        if stable.exists():
            return stable
    return Path(found)


def python_origin(prefix: str | None = None) -> str:
    """Who made the Python that runs this, by where it lies; ``prefix``: its real folder."""
    place = f"{os.path.realpath(sys.base_prefix) if prefix is None else prefix}/"
    return next((name for mark, name in _ORIGINS if mark in place), "another Python")


def python_warning(prefix: Path | None = None) -> str:
    """What will break at the next upgrade of Python; empty where nothing will.

    An environment remembers the folder of the Python that it was made with.
    """
    try:
        text = ((prefix or Path(sys.prefix)) / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    home = next((line.partition("=")[2].strip() for line in text.splitlines() if line.startswith("home")), "")
    if "/Cellar/" not in home:
        return ""
    return (
        f"this environment was made with {home}, which Homebrew removes at its next upgrade of Python; "
        "make it with /opt/homebrew/opt/python@3.x/bin/python3.x instead"
    )
