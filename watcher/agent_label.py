"""The name under which launchd knows us."""

from __future__ import annotations

import os

LABEL = "io.depthwatcher.agent"


def under_launchd() -> bool:
    """Whether this process was started by launchd as our agent (it gives its jobs their own label)."""
    return os.environ.get("XPC_SERVICE_NAME") == LABEL
