"""``inspect``: the verb that reads a finished map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.endings import JsonOption, printable, verb


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: depth-watcher inspect shot_0001_depth.png --raw shot_0001.npy")(inspect)


@verb
def inspect(
    file: Annotated[Path, typer.Argument(metavar="MAP", show_default=False)],
    raw: Annotated[
        Path | None,
        typer.Option("--raw", metavar="OUT.npy", help="Undo the scaling: write the raw depth as a NumPy array."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What a depth map says about its making; and its raw depth."""
    from watcher import inspection

    found = inspection.examine(file)
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
