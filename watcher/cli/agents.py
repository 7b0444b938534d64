"""``install`` and its kin: the verbs of the launchd agent, which this version does not have yet."""

from __future__ import annotations

import typer

from watcher.cli.endings import verb
from watcher.errors import Unavailable

VERBS = {
    "install": "Start at login, kept alive by launchd.",
    "uninstall": "Take the agent away; pictures and maps stay.",
    "start": "Start the agent.",
    "stop": "Stop the agent.",
    "restart": "Stop and start the agent.",
    "logs": "Show the log.",
}


def register(app: typer.Typer) -> None:
    for name, text in VERBS.items():
        app.command(name, help=f"{text} (not in this version)", epilog=f"Example: depth-watcher {name}")(_not_yet(name))


def _not_yet(name: str):  # type: ignore[no-untyped-def]
    @verb
    def refuse() -> int:
        raise Unavailable(
            f"`{name}` is not part of this version", "Until then keep `depth-watcher run` open in a terminal."
        )

    return refuse
