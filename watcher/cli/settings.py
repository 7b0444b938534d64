"""``config show|check|schema|init``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.endings import ConfigOption, verb
from watcher.errors import CannotCreate, ExitCode

app = typer.Typer(help="The configuration: show, check, schema, init.", no_args_is_help=True, rich_markup_mode=None)


@app.command(epilog="Example: depth-watcher config show")
@verb
def show(config: ConfigOption = None) -> None:
    """The settings in effect, with every default filled in."""
    from watcher import config as room

    typer.echo(room.show(room.load(room.find(config))), nl=False)


@app.command(epilog="Example: depth-watcher config check ./config.yaml")
@verb
def check(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", show_default=False)] = None,
    config: ConfigOption = None,
) -> None:
    """Name every mistake in the file, each with its line. 0: none; 2: some."""
    from watcher import config as room

    found = room.find(file or config)
    room.load(found)
    typer.echo(f"{found or 'no file, the defaults'}: no mistakes")


@app.command(epilog="Example: depth-watcher config schema > depth-watcher.schema.json")
@verb
def schema() -> None:
    """A JSON Schema, with which editors complete and check the file."""
    from watcher import config as room

    typer.echo(json.dumps(room.schema(), indent=2))


@app.command(epilog="Example: depth-watcher config init ~/depth.yaml")
@verb
def init(file: Annotated[Path | None, typer.Argument(metavar="[FILE]", show_default=False)] = None) -> int:
    """Write the commented default configuration; never over a file that is there."""
    from watcher import config as room
    from watcher import durable

    target = file or room.user_file()
    try:
        durable.make_folder(target.absolute().parent)
        durable.write_new(target.absolute(), room.default_text().encode())
    except FileExistsError:
        raise CannotCreate(f"{target} is there already", "Edit it, or name another file.") from None
    typer.echo(f"written: {target}")
    return ExitCode.DONE
