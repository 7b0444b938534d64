"""The one place where errors become endings: ``error: what. remedy`` on stderr, and the exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from watcher import agent_label
from watcher.errors import ConfigError, ExitCode, WatcherError, by_hand, explain

P = ParamSpec("P")

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The configuration file.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Stable keys, for programs.")]
_INTERRUPTED = 130


def verb(function: Callable[P, int | None]) -> Callable[P, None]:
    """A verb returns its exit code (``None``: 0) or raises; either way this ends it."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = function(*args, **kwargs)
        except WatcherError as error:
            complain(error)
            code = error.exit_code
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except BrokenPipeError:
            sys.stderr.close()  # the reader has gone; there is nobody to tell
            code = ExitCode.DONE
        except OSError as error:
            what, remedy = explain(error)
            say_error(_from_here(f"{what}. {remedy}"))
            code = ExitCode.CANNOT_CREATE
        raise typer.Exit(code or ExitCode.DONE)

    return run


def complain(error: WatcherError) -> None:
    say_error(_from_here(str(error)))
    if isinstance(error, ConfigError):
        for problem in error.problems:
            typer.echo(f"  {problem}", err=True)


def _from_here(text: str) -> str:
    """An agent is started again by whoever started it; a person has to do it."""
    return text if agent_label.under_launchd() or agent_label.under_systemd() else by_hand(text)


def say_error(text: str) -> None:
    typer.echo(f"error: {printable(text)}", err=True)


def printable(text: str) -> str:
    """File names may hold anything; a terminal gets one readable line."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )
