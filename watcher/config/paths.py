"""Paths as people write them: ``~``, ``$VARIABLES``, relative to the file, and the folders beside an inbox."""

from __future__ import annotations

import os
import re
from pathlib import Path

DEFAULT_INBOX = "~/DepthWatcher/inbox"

_LONGEST_BYTES = 1023  # PATH_MAX of macOS; Linux takes more, but then one file would not do for both
_LONGEST_NAME = 255
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<bare>\w+))")


def expand(text: str, base: Path) -> Path:
    """``text`` with variables and ``~`` replaced, made absolute against ``base``. ``$$`` is a plain ``$``.

    Symbolic links and ``..`` are kept: only the system knows where they lead at the moment of use.
    Raises ``ValueError`` with a reason for people.
    """
    if not text.strip():
        raise ValueError("a path cannot be empty")
    if "\0" in text:
        raise ValueError("a path cannot hold a NUL character")
    spelled = os.path.expanduser(_VARIABLE.sub(_value_of, text))
    if spelled.startswith("~") and not text.startswith("$$"):
        raise ValueError(f"there is no user called {spelled.split('/', 1)[0][1:]!r} on this machine")
    path = Path(os.path.join(base, spelled))
    if len(os.fsencode(path)) > _LONGEST_BYTES or any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.parts):
        raise ValueError("no volume takes a path this long")
    return path


def _value_of(match: re.Match[str]) -> str:
    if match["dollar"]:
        return "$"
    name = match["braced"] or match["bare"]
    value = os.environ.get(name)
    if not value:
        raise ValueError(f"the variable ${name} is not set")
    return value


def beside(inbox: Path, key: str) -> Path:
    """Where ``key`` (outbox, processed, failed) goes when an entry names only its inbox.

    ``…/inbox`` gets ``…/outbox``; any other name keeps its own: ``…/drop`` gets ``…/drop-outbox``. So two inboxes
    in one folder never share a ``failed``, and a folder of the user's that happens to be called so is not touched.
    """
    where = inbox if inbox.name not in ("", "..") else Path(os.path.realpath(inbox))
    return where.with_name(key if where.name == "inbox" else f"{where.name}-{key}") if where.name else where / key


def stands_alone(inbox: Path) -> bool:
    """True where nothing may be put beside the inbox: it is a volume of its own, so "beside" is another disk."""
    real = Path(os.path.realpath(inbox))
    return real.parent in (real, Path("/Volumes")) or os.path.ismount(real)
