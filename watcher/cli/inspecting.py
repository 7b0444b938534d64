"""``inspect``: the verb that reads a finished map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.endings import ConfigOption, JsonOption, printable, verb
from watcher.errors import WatcherError


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: depth-watcher inspect shot_0001_depth.png --raw shot_0001.npy")(inspect)


def _found(file: Path, path: Path | None) -> Path:
    """The file itself, or where an outbox of the settings has it."""
    from watcher import config

    if path is None and (file.is_file() or file.is_absolute()):
        return file
    try:
        settings = config.load(config.find(path))
    except WatcherError:
        if path is not None:
            raise
        return file
    places = [file, *(folder.outbox / file for folder in settings.folders)]
    return next((place for place in places if place.is_file()), file)


@verb
def inspect(
    file: Annotated[Path, typer.Argument(metavar="MAP", show_default=False)],
    raw: Annotated[
        Path | None,
        typer.Option("--raw", metavar="OUT.npy", help="Undo the scaling: write the raw depth as a NumPy array."),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """What a depth map says about its making; and its raw depth. A MAP that is not here may be in an outbox."""
    from watcher import inspection

    found = inspection.examine(_found(file, config))
    if raw is not None:
        inspection.save_raw(found, raw)
    shown = found.as_json()
    if as_json:
        typer.echo(json.dumps(shown, indent=2))
        return
    facts = shown.pop("facts")
    width = max(map(len, [*shown, *facts]))
    for key, value in [*shown.items(), *facts.items()]:
        typer.echo(f"{printable(key):{width}}  {printable(str(value))}")
