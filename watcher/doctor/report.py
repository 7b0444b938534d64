"""A report that can be sent to strangers: what the findings say of machine and program, nothing of files or folders."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from watcher import __version__, agent, config, darwin, durable
from watcher.agent import Survey
from watcher.clock import stamp
from watcher.doctor import points
from watcher.doctor.finding import Finding

# Only these are told in full; of all others only whether they are well, because their words may hold a path.
_TOLD = frozenset(
    (
        *("system", "architecture", "runtime", "telemetry", "inference", "self-test", "graph", "sleep"),
        *("agent", "agent-file", "login-item", "notifications", "native-log", "crashes"),
    )
)


def make(findings: Sequence[Finding], survey: Survey, settings: config.Settings) -> dict[str, Any]:
    """Keys are stable: ``program``, ``system``, ``findings``, and those that ``points.POINTS`` names."""
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
            "chip": darwin.sysctl_text("machdep.cpu.brand_string"),
            "rosetta": darwin.translated(),
            "python": agent.python_origin(),
            "open_files": [soft, hard],
            "processors": os.cpu_count(),
        },
        "findings": [_told(finding) for finding in findings],
        **points.answers(settings, findings, survey),
    }


def _told(finding: Finding) -> dict[str, str]:
    told = {"id": finding.id, "state": finding.state}
    if finding.id in _TOLD:
        told["found"] = _without_places(finding.found)
    return told


def _without_places(text: str) -> str:
    """Words with a slash before a letter may be a place: they go, whole."""
    return " ".join("<path>" if word.lstrip("('\"").startswith(("/", "~")) else word for word in text.split())


def write(findings: Sequence[Finding], file: Path, survey: Survey, settings: config.Settings) -> None:
    """Raises ``OSError``; never over a file that is there."""
    text = json.dumps(make(findings, survey, settings), indent=2) + "\n"
    durable.write_new(file.absolute(), text.encode(), mode=0o600)
