"""What every section of the settings has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Strict ("3" is not a number), closed (unknown keys are mistakes) and frozen."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )
