"""What was seen by eye on the contact sheet of a network, as looked.toml has it."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

LOOKED = Path(__file__).with_name("looked.toml")


def _entry(network: Path) -> dict[str, Any] | None:
    """What was written down of this very file."""
    digest = hashlib.sha256(network.read_bytes()).hexdigest()
    entries = tomllib.loads(LOOKED.read_text(encoding="utf-8")).get("looked", [])
    return next((one for one in entries if one["sha256"] == digest), None)


def share_lifted(network: Path) -> float:
    """Share of the subjects that it lifts off their background, 0..1; nan where nobody has looked."""
    one = _entry(network)
    return len(one["lifted"]) / len(one["lifted"] + one["not_lifted"]) if one else float("nan")


def seen(network: Path) -> str:
    """The same in words, with the subjects that it loses."""
    if (one := _entry(network)) is None:
        return "nobody has looked at its contact sheet"
    among = len(one["lifted"]) + len(one["not_lifted"])
    return f"{len(one['lifted'])} of {among} subjects lifted off by eye; not: {', '.join(one['not_lifted']) or 'none'}"
