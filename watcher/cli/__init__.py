"""The command line: argv → verb → rendered answer and exit code. No verb decides anything of its own.

Nothing heavy is imported here: ``--help`` and ``status`` must answer at once, and verbs that start other programs
must not hold the runtime in memory.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

from watcher import early

early.heed()  # what follows takes its time
early.hurry()

import typer
import typer.main

from watcher.cli import agents, inspecting, looking, models, plain, settings, working

app = typer.Typer(
    name="depth-watcher",
    help="A folder that turns pictures into depth maps.",
    epilog="Start here: depth-watcher once --inbox PICTURES --outbox MAPS --after keep",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for room in (working, looking, inspecting, agents):
    room.register(app)
app.add_typer(settings.app, name="config")
app.add_typer(models.app, name="models")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from watcher import __version__

        typer.echo(f"depth-watcher {__version__}")
        raise typer.Exit


def _only(verb: list[str]) -> None:
    """Of all verbs only the one that was typed is built, which saves ten to twenty milliseconds."""
    commands = [one for one in app.registered_commands if one.callback and [one.callback.__name__] == verb]
    groups = [one for one in app.registered_groups if [one.name] == verb]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups


def main() -> None:
    _only(sys.argv[1:2])
    plain.spare(typer.main.get_command(app))()
