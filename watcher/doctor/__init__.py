"""Doctor: every precondition, looked at from outside the daemon, and one real inference. Starts no process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from watcher import config
from watcher.agent import Survey
from watcher.doctor import machine, places, program, report, service
from watcher.doctor.finding import Finding
from watcher.errors import ConfigError

__all__ = ["Finding", "examine", "write_report"]


def examine(config_path: Path | None, survey: Survey | None = None) -> tuple[Finding, ...]:
    """Look at everything. A configuration with mistakes is a finding too, and what can be checked still is.

    ``survey`` is ``agent.survey()``: asked for by the caller, because it starts processes and this one will hold the
    runtime.
    """
    return tuple(_look(config_path, survey or Survey()))


def write_report(findings: Sequence[Finding], file: Path, survey: Survey, config_path: Path | None) -> None:
    """What can be sent to others, into a new file. Raises ``OSError``; never over a file that is there."""
    report.write(findings, file, survey, _settings(config_path)[0])


def _look(config_path: Path | None, survey: Survey) -> Iterator[Finding]:
    yield from program.system()
    yield from machine.machine(survey)
    yield from program.runtime()
    settings, findings = _settings(config_path)
    yield from findings
    yield from places.state(settings)
    if not any(finding.state == "problem" for finding in findings):
        for number, folder in enumerate(settings.folders, 1):
            yield from places.folder(number, folder, settings.watch.observer)
        yield from service.service(settings, config.find(config_path), survey)
    yield from program.network(settings)


def _settings(config_path: Path | None) -> tuple[config.Settings, list[Finding]]:
    why = "Nothing starts with a mistake in the settings."
    try:
        found = config.find(config_path)
        settings = config.load(found)
    except ConfigError as error:
        lines = error.problems or (error.what,)
        remedy = error.remedy or "Correct it; `depth-watcher config check` looks again."
        problems = [Finding("config", "settings", "problem", line, why, remedy) for line in lines]
        return config.load(None), problems
    return settings, [Finding("config", "settings", "ok", str(found or "no file: the defaults"), why)]
