"""Small files of ours that say what was decided: each is JSON, whole, absent or damaged.

One that cannot be read now is neither: what it says still holds, and must not be decided anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def told(path: Path) -> dict[str, Any] | None:
    """What the file says; ``None`` where it is not there, or says nothing that we wrote. Raises ``OSError``."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def pair(value: object) -> tuple[float, float] | None:
    """A range, where ``value`` is one."""
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(each, (int, float)) for each in value):
        low, high = float(value[0]), float(value[1])
        return (low, high) if high > low else None
    return None
