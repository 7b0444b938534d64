"""A report that can be sent to strangers: what the findings say of machine and program, nothing of files or folders."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from watcher import __version__, agent, durable
from watcher.clock import stamp
from watcher.doctor.finding import Finding

# Only these are told in full; of all others only whether they are well, because their words may hold a path.
_TOLD = frozenset({"architecture", "runtime", "telemetry", "inference", "agent", "agent-file", "native-log", "crashes"})


def make(findings: Sequence[Finding]) -> dict[str, Any]:
    """Keys are stable: ``program``, ``system``, ``findings``."""
    machine = os.uname()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "made": stamp(),
        "program": {"version": __version__, "python": sys.version.split()[0], "encoding": sys.stdout.encoding},
        "system": {
            "name": machine.sysname,
            "release": machine.release,
            "machine": machine.machine,
            "macos": agent.os_build(),
            "open_files": [soft, hard],
            "processors": os.cpu_count(),
        },
        "findings": [_told(finding) for finding in findings],
    }


def _told(finding: Finding) -> dict[str, str]:
    told = {"id": finding.id, "state": finding.state}
    if finding.id in _TOLD:
        told["found"] = _without_places(finding.found)
    return told


def _without_places(text: str) -> str:
    """Words with a slash before a letter may be a place: they go, whole."""
    return " ".join("<path>" if word.lstrip("('\"").startswith(("/", "~")) else word for word in text.split())


def write(findings: Sequence[Finding], file: Path) -> None:
    """Raises ``OSError``; never over a file that is there."""
    text = json.dumps(make(findings), indent=2) + "\n"
    durable.write_new(file.absolute(), text.encode(), mode=0o600)
