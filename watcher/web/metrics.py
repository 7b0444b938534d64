"""Metrics: the facts in Prometheus' text format, version 0.0.4. Names carry their unit, seconds and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATES = ("starting", "running", "degraded", "stopping", "stopped")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _line(name: str, value: float, **labels: str) -> str:
    inner = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value:.10g}" if inner else f"{name} {value:.10g}"


def _family(name: str, kind: str, about: str, lines: list[str]) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *lines]


def render(facts: Mapping[str, Any]) -> str:
    """The whole page, ending with a newline."""
    status, own = facts["status"], "depth_watcher"
    counts, info = status["counts"], {"version": status["version"], "model": status["model"]}
    info["provider"] = status["provider"]
    states = [_line(f"{own}_state", float(status["state"] == state), state=state) for state in _STATES]
    frames = [
        _line(f"{own}_frames", counts[state], state=state) for state in ("waiting", "in_flight", "failed", "ignored")
    ]
    stages = [
        _line(f"{own}_stage_last_seconds", took_ms / 1000, stage=stage)
        for stage, took_ms in status["stages_ms"].items()
    ]
    outcomes = [
        _line(f"{own}_calls_total", count, outcome=outcome)
        for outcome, count in sorted(facts["calls"]["outcomes"].items())
    ]
    families = [
        _family(f"{own}_info", "gauge", "What runs.", [_line(f"{own}_info", 1, **info)]),
        _family(f"{own}_state", "gauge", "1 for the state that the daemon is in.", states),
        _family(f"{own}_paused", "gauge", "1 while folders are paused.", [_line(f"{own}_paused", facts["paused"])]),
        _family(
            f"{own}_maps_total",
            "counter",
            "Maps of files, since the state folder began.",
            [_line(f"{own}_maps_total", counts["done"])],
        ),
        _family(f"{own}_frames", "gauge", "Frames by state, now.", frames),
        _family(f"{own}_stage_last_seconds", "gauge", "What the last frame cost in each stage.", stages),
        _family(f"{own}_calls_total", "counter", "Pictures that were sent, by outcome.", outcomes),
        _family(
            f"{own}_calls_waiting",
            "gauge",
            "Sent pictures that wait.",
            [_line(f"{own}_calls_waiting", facts["waiting"])],
        ),
        _family(f"{own}_call_duration_seconds", "histogram", "From request to map.", _histogram(facts["calls"])),
        _family(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the daemon.",
            [_line("process_resident_memory_bytes", facts["resident_bytes"])],
        ),
    ]
    return "\n".join(line for family in families for line in family) + "\n"


def _histogram(calls: Mapping[str, Any]) -> list[str]:
    name = "depth_watcher_call_duration_seconds"
    lines = [_line(f"{name}_bucket", count, le=f"{upper:g}") for upper, count in calls["buckets"]]
    lines.append(_line(f"{name}_bucket", calls["answered"], le="+Inf"))
    return [*lines, _line(f"{name}_sum", calls["seconds"]), _line(f"{name}_count", calls["answered"])]
