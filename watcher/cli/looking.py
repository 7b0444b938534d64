"""``status``, ``retry`` and ``doctor``: the verbs that look, and bring back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watcher import agent_label
from watcher.cli.endings import ConfigOption, JsonOption, printable, verb
from watcher.errors import CannotCreate, ExitCode, NoInput, UsageError

if TYPE_CHECKING:
    from watcher.status import Snapshot

_CLEAR = "\x1b[2J\x1b[H"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: depth-watcher status --json")(status)
    app.command(epilog="Example: depth-watcher retry 'IMG_*.jpg'")(retry)
    app.command(epilog="Example: depth-watcher doctor")(doctor)


@verb
def status(
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second.")] = False,
    config: ConfigOption = None,
) -> int:
    """Is the daemon running, what does it do, what failed."""
    # A daemon that runs has settings: a mistake that came into the file since does not hide what it does.
    from watcher import clock, status
    from watcher import config as settings_room

    file = settings_room.find(config)
    state_dir = settings_room.glimpse_of_state_dir(file)
    if state_dir is None or (file is not None and not status.read(state_dir).running):
        state_dir = settings_room.state_dir(settings_room.load(file))
    while True:
        snapshot = status.read(state_dir)
        text = json.dumps(snapshot.as_json(), indent=None if watch else 2) if as_json else render(snapshot)
        if watch and not as_json and sys.stdout.isatty():
            typer.echo(_CLEAR, nl=False)
        typer.echo(text)
        if not as_json and (words := _agent_words(state_dir)):
            typer.echo(f"  agent     {printable(words)}")
        if not watch:
            return ExitCode.DONE
        clock.pause(1.0)


def _agent_words(state_dir: Path) -> str:
    """One line about the agent; the room that asks the system is only loaded where there is something to ask."""
    if not agent_label.installed():
        return ""
    from watcher.agent import Agent

    return Agent(state_dir).words()


def render(snapshot: Snapshot) -> str:
    """The snapshot for people."""
    counts = snapshot.counts
    lines = [f"{snapshot.state}" + (f" (process {snapshot.pid})" if snapshot.running else "")]
    if snapshot.reason:
        lines.append(f"  because   {printable(snapshot.reason)}")
    if snapshot.model:
        lines.append(f"  model     {snapshot.model}" + (f" on {snapshot.provider}" if snapshot.provider else ""))
    lines += provider_lines(snapshot)
    if snapshot.notice:
        lines.append(f"            {snapshot.notice}")
    lines += [f"  inbox     {printable(inbox)}" for inbox in snapshot.inboxes]
    if snapshot.watch:
        lines.append(f"  watching  {printable(snapshot.watch)}")
    lines.append(
        f"  pictures  {counts.waiting} waiting, {counts.in_flight} in work, {counts.done} done, "
        f"{counts.failed} failed, {counts.ignored} ignored"
    )
    if snapshot.in_flight:
        lines.append(f"  in work   {', '.join(printable(name) for name in snapshot.in_flight[:8])}")
    if snapshot.rate:
        stages = ", ".join(f"{name} {took_ms:.0f} ms" for name, took_ms in snapshot.stages_ms.items())
        lines.append(f"  speed     {snapshot.rate:.2f} a second; last frame: {stages}")
    lines += _pace(snapshot)
    if snapshot.incomplete:
        lines.append("  waits     for the rest of its bytes; at the time given it is tried as it is")
        lines += [
            f"            {printable(one.name)}: {printable(one.why)}, until {one.until}" for one in snapshot.incomplete
        ]
    if snapshot.last_errors:
        lines.append("  failed    (depth-watcher retry NAME brings a picture back)")
        lines += [f"            {printable(one.name)}: {printable(one.what)}" for one in snapshot.last_errors]
    return "\n".join(lines)


def _pace(snapshot: Snapshot) -> list[str]:
    """Which stage sets the pace, so that a person sees whether the network waits."""
    if not snapshot.bottleneck:
        return []
    busy = ", ".join(
        f"{name} {share:.0%} busy"
        + (" ({}/{} waiting)".format(*snapshot.queues[name]) if name in snapshot.queues else "")
        for name, share in snapshot.busy.items()
    )
    run = snapshot.busy.get("run", 0.0)
    waits = "the network never waits" if run > 0.9 else f"the network waits {1 - run:.0%} of the time"
    return [f"  pace      set by {snapshot.bottleneck}; {waits}", f"            {busy}"]


def provider_lines(snapshot: Snapshot) -> list[str]:
    """Who runs which part of the network, and why that was chosen."""
    lines = []
    if snapshot.fallback:
        lines.append(f"  FALLBACK  {printable(snapshot.fallback)}")
    if snapshot.nodes and snapshot.partitions:
        shares = ", ".join(f"{count} nodes on {name}" for name, count in snapshot.nodes.items())
        lines.append(f"            {shares}; {snapshot.partitions} partition(s)")
    if snapshot.decision:
        lines.append(f"            {printable(snapshot.decision)}")
    return lines


@verb
def retry(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that failed.")] = False,
    config: ConfigOption = None,
) -> int:
    """Bring failed pictures back into the inbox, by name or pattern, as if they had never been tried."""
    from watcher import comeback
    from watcher import config as settings_room
    from watcher.quarantine import Quarantine

    settings = settings_room.load(settings_room.find(config))
    rooms = [Quarantine(folder.failed) for folder in settings.folders]
    patterns = ("*",) if everything else tuple(names or ())
    if not patterns:
        kept = [case for room in rooms for case in room.cases()]
        for case in kept:
            typer.echo(f"{printable(case.rel)}: {case.reason.get('what', '')}")
        if not kept:
            typer.echo("nothing has failed")
            return ExitCode.DONE
        raise UsageError("say which pictures shall come back", "Name them, or use --all.")
    chosen = [(room, case) for room in rooms for case in room.chosen(patterns)]
    if not chosen and everything:
        typer.echo("nothing has failed")
        return ExitCode.DONE
    if not chosen:
        raise NoInput(f"no failed picture is called {', '.join(patterns)}", "`depth-watcher retry` lists them.")
    for room, case in chosen:
        back = comeback.bring_back(settings_room.state_dir(settings), room, case)
        typer.echo(f"back in the inbox: {printable(str(back))}")
    return ExitCode.DONE


@verb
def doctor(
    as_json: JsonOption = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Also write what can be sent to others.")
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Check every precondition, and run the network once for real."""
    from watcher import agent

    survey = agent.survey(probing=report is not None)  # starts programs; what follows loads the runtime
    from watcher import doctor

    findings = doctor.examine(config, survey)
    if report is not None:
        try:
            doctor.write_report(findings, report, survey, config)
        except FileExistsError:
            raise CannotCreate(f"{report} is there already", "Name another file.") from None
    if as_json:
        typer.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding.state:8} {finding.title}: {printable(finding.found)}")
            if finding.state != "ok" and finding.remedy:
                typer.echo(f"         {printable(finding.remedy)}")
    return ExitCode.SOME_FAILED if any(finding.state == "problem" for finding in findings) else ExitCode.DONE
