"""A finding: one precondition, what was found, why it matters, and what to do. Data; the door renders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``id`` is stable. ``remedy`` is empty where nothing has to be done. ``facts``: numbers for a report only."""

    id: str
    title: str
    state: State
    found: str
    why: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        values = asdict(self)
        del values["facts"]
        return values
