"""Open points: what nobody has seen on a Mac, and which fields of a report tell it. The table is in docs/macos.md."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher import agent, clock, config, darwin, status
from watcher.agent import Survey
from watcher.doctor.finding import Finding
from watcher.inbox import is_dataless

_LOOKED_AT_MOST = 20_000
_BUSY_BEFORE_S = 631152000.0  # 1990


@dataclass(frozen=True, slots=True)
class Point:
    """``fields``: paths into a report. ``ask``: what only a person can have seen; empty where nobody has to answer."""

    number: int
    what: str
    fields: tuple[str, ...]
    ask: str = ""


POINTS = (
    Point(
        1,
        "how long launchd waits before it kills, where a plist does not say",
        ("launchd.default_exit_timeout", "launchd.exit_timeout", "launchd.spawn_type"),
    ),
    Point(2, "which runtime takes CoreML's named options", ("coreml.runtime", "coreml.options_refused")),
    Point(
        3,
        "how Finder dates a file that it is still copying",
        ("finder.busy_years",),
        "Copy a file of some gigabytes into the inbox with Finder, and make the report while it is copied.",
    ),
    Point(
        4,
        "whether MaterializeDatalessFiles is enough to download from iCloud",
        ("icloud.policy_daemon", "icloud.policy_here", "icloud.dataless", "icloud.fetched", "icloud.failed"),
        "Set watch.fetch_dataless: true and put a file that is only in iCloud into the inbox before the report.",
    ),
    Point(
        5,
        "how ALL and CPUAndGPU do on this chip, in time and in numbers",
        ("system.chip", "system.macos", "coreml.trials", "coreml.nodes", "coreml.partitions", "coreml.decided_s"),
    ),
    Point(6, "whether launchd loads a plist through a link", ("launchd.symlink",)),
    Point(
        7,
        "whether macOS ever asks when the agent is refused a guarded folder",
        ("privacy.guarded", "privacy.daemon_refused"),
        "With an inbox in Documents: did macOS show a question when the agent started? Which program did it name?",
    ),
    Point(
        8,
        "whether Python's monotonic clock stops while the Mac sleeps",
        ("clocks.monotonic_s", "clocks.since_boot_s"),
    ),
)


def answers(settings: config.Settings, findings: Sequence[Finding], survey: Survey) -> dict[str, Any]:
    """The sections of a report that ``POINTS`` names, and the questions. No name of a file or folder is in them."""
    told = status.read(config.state_dir(settings))
    facts: Mapping[str, Any] = next((finding.facts for finding in findings if finding.id == "self-test"), {})
    trials = list(facts.get("trials", ()))
    years, dataless = _look_through(settings)
    return {
        "launchd": {
            "default_exit_timeout": survey.default_exit_timeout,
            "exit_timeout": survey.job.exit_timeout,
            "spawn_type": survey.job.spawn_type,
            "symlink": survey.symlink,
        },
        "coreml": {
            **{key: facts.get(key) for key in ("runtime", "provider", "nodes", "partitions", "decided_s")},
            "trials": trials,
            "options_refused": any("option" in str(trial.get("fault", "")).lower() for trial in trials),
        },
        "finder": {"busy_years": years},
        "icloud": {
            "policy_here": darwin.download_policy(),
            "policy_daemon": told.icloud.get("policy"),
            "dataless": dataless,
            "fetched": told.icloud.get("fetched"),
            "failed": told.icloud.get("failed"),
        },
        "privacy": {
            "guarded": sorted({name for _, name in agent.guarded_folders(settings)} if agent.on_mac() else ()),
            "daemon_refused": told.running and "macOS refuses access" in told.reason,
        },
        "clocks": clock.readings(),
        "questions": [{"point": point.number, "ask": point.ask, "answer": ""} for point in POINTS if point.ask],
    }


def _look_through(settings: config.Settings) -> tuple[dict[str, int], int]:
    """(files by year of birth, where that is before 1990; files that are only in iCloud), of all inboxes."""
    years: Counter[str] = Counter()
    dataless = 0
    for folder in settings.folders:
        for state in _states(folder.inbox):
            born_s = getattr(state, "st_birthtime", None)
            if stat.S_ISREG(state.st_mode) and born_s is not None and born_s < _BUSY_BEFORE_S:
                years[clock.stamp(born_s)[:4]] += 1
            dataless += is_dataless(state)
    return dict(years), dataless


def _states(inbox: Path) -> Iterator[os.stat_result]:
    """What lies in the inbox itself; sub-folders hold nothing that tells more."""
    with contextlib.suppress(OSError), os.scandir(inbox) as entries:
        for entry in itertools.islice(entries, _LOOKED_AT_MOST):
            yield entry.stat(follow_symlinks=False)
