"""``install``, ``uninstall``, ``start``, ``stop``, ``restart``, ``logs``: the daemon as a service of the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from watcher.cli.endings import ConfigOption, printable, verb
from watcher.errors import ConfigError, ExitCode, NoInput, WatcherError

if TYPE_CHECKING:
    from watcher import config
    from watcher.agent import Agent

_LOOK_EVERY_S = 0.25


def register(app: typer.Typer) -> None:
    for function in (install, uninstall, start, stop, restart):
        app.command(epilog=f"Example: depth-watcher {function.__name__}")(function)
    app.command(epilog="Example: depth-watcher logs -f")(logs)
    app.command(hidden=True)(notify)


@verb
def install(
    config: ConfigOption = None,
    print_only: Annotated[bool, typer.Option("--print", help="Show the file that would be written; do nothing.")] = (
        False
    ),
    background: Annotated[bool, typer.Option("--background", help="Stay cool and quiet; several times slower.")] = (
        False
    ),
) -> int:
    """Start at login and be kept alive. Safe to repeat: after an upgrade, or with another --config."""
    from watcher import agent
    from watcher import config as room

    file = room.find(config)
    settings = room.load(file)
    fill = agent.filling(settings, file or room.user_file(), background=background)
    if print_only:
        typer.echo(agent.rendered(fill).decode("utf-8", "backslashreplace"), nl=False)
        return ExitCode.DONE
    if file is None:
        _write_default(room.user_file())
    _warn(agent.guarded_folders(settings, fill.config), agent.python_warning())
    try:
        pid = agent.Agent(room.state_dir(settings)).install(fill)
    except WatcherError:
        if file is None and not agent.installed_file().exists():
            room.user_file().unlink(missing_ok=True)  # refused: nothing is left behind
        raise
    typer.echo(f"installed: {printable(str(agent.installed_file()))}")
    typer.echo(f"running as process {pid}, with {printable(str(fill.config))}")
    for folder in settings.folders:
        typer.echo(f"drop pictures into {printable(str(folder.inbox))}")
    if agent.on_mac():
        typer.echo(
            'macOS may say "Background Items Added" and name this Python: that is this agent. '
            "It is switched off and on in System Settings > General > Login Items & Extensions."
        )
    return ExitCode.DONE


def _write_default(file: Path) -> None:
    """The agent's settings lie in a file that can be edited, from the beginning."""
    from watcher import config, durable

    durable.make_folder(file.parent)
    durable.write_new(file, config.default_text().encode())
    typer.echo(f"written: {printable(str(file))}")


def _warn(guarded: list[tuple[Path, str]], python: str) -> None:
    from watcher.agent import protected, python_for_plist

    for path, name in guarded:
        typer.echo(f"warning: {printable(str(path))} lies in {name}, which macOS guards from the agent", err=True)
    if guarded:
        typer.echo(f"         If it is refused there: {protected.clicks(python_for_plist())}", err=True)
    if python:
        typer.echo(f"warning: {printable(python)}", err=True)


@verb
def uninstall(config: ConfigOption = None) -> int:
    """Take the agent away. Pictures, maps, settings and models stay."""
    found = _agent(config).uninstall()
    typer.echo("the agent is gone; pictures, maps, settings and models are where they were" if found else "not there")
    return ExitCode.DONE


@verb
def start(config: ConfigOption = None) -> int:
    """Start the installed agent."""
    typer.echo(f"running as process {_agent(config).start()}")
    return ExitCode.DONE


@verb
def stop(config: ConfigOption = None) -> int:
    """Stop the agent, until `start` or the next login. What is in work is given back."""
    typer.echo("stopped" if _agent(config).stop() else "it was not running")
    return ExitCode.DONE


@verb
def restart(config: ConfigOption = None) -> int:
    """Stop and start the agent, after a change of the settings."""
    typer.echo(f"running as process {_agent(config).restart()}")
    return ExitCode.DONE


def _agent(given: Path | None) -> Agent:
    """The installed agent, with the state folder of the settings that it was installed with."""
    from watcher import agent
    from watcher import config as room

    return agent.Agent(room.state_dir(_settings(given)))


def _settings(given: Path | None) -> config.Settings:
    """Of ``given``, else of the file that the agent runs with. A broken one must not keep it from stopping."""
    from watcher import agent
    from watcher import config as room

    try:
        return room.load(room.find(given) if given is not None else agent.installed_config() or room.find(None))
    except ConfigError:
        if given is not None:
            raise
        return room.Settings()


@verb
def notify(config: ConfigOption = None) -> int:
    """Show what the daemon has left to be told, and remove it. The system starts this by itself: notify: true."""
    from watcher import agent
    from watcher import config as room

    try:
        state_dir = room.state_dir(_settings(config))
    except ConfigError:
        # The daemon goes on with the settings that it began with. What is not taken would be told again and again.
        state_dir = room.glimpse_of_state_dir(config) or room.state_dir(room.Settings())
    agent.show_notices(state_dir)
    return ExitCode.DONE


@verb
def logs(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as lines are written; Ctrl-C ends it.")] = False,
    lines: Annotated[int, typer.Option("-n", metavar="N", min=1, max=100_000, help="The last N lines.")] = 50,
    config: ConfigOption = None,
) -> int:
    """The end of the daemon's log, and what its native code has said, if anything."""
    from watcher import agent, clock
    from watcher.agent.tail import Tail, last_lines

    file, native = agent.logs_of(_settings(config))
    if not follow and not file.exists():
        raise NoInput(f"there is no log yet: {file}", "It begins with the first `depth-watcher run`, `once` or agent.")
    for line in last_lines(file, lines):
        typer.echo(printable(line))
    if native is not None and (said := last_lines(native, lines)):
        typer.echo(f"--- {printable(str(native))}")
        for line in said:
            typer.echo(printable(line))
    tail = Tail(file)
    while follow:
        for line in tail.fresh():
            typer.echo(printable(line))
        clock.pause(_LOOK_EVERY_S)
    return ExitCode.DONE
