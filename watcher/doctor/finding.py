"""A finding: one precondition, what was found, why it matters, and what to do. Data; the door renders it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``id`` is stable. ``remedy`` is empty where nothing has to be done."""

    id: str
    title: str
    state: State
    found: str
    why: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
