"""Plain words: paths and texts of the command line need no validation library, and verbs that look load none.

Typer builds a pydantic adapter for every option, given or not, before it looks at what was typed; that costs as much
as all the rest of ``status``. Numbers and whatever is not plain still go its way. Where a later Typer keeps its
parameters differently, nothing here applies and all of it works as Typer has it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_PLAIN: dict[Any, Callable[[Any], Any]] = {
    Path: Path,
    str: str,
    list[Path]: lambda words: [Path(word) for word in words],
    list[str]: lambda words: [str(word) for word in words],
}


class _Plain:
    """What Typer asks for the value of one parameter; what is not plain goes on to what Typer has for it."""

    def __init__(self, make: Callable[[Any], Any] | None) -> None:
        self._make = make

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._make is not None:
            return self._make(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def spare(command: Any) -> Any:
    """The same command, its parameters read without a detour, that for ``--help`` among them; its verbs too."""
    of_command = command.get_params

    def get_params(context: Any) -> list[Any]:
        found: list[Any] = of_command(context)
        for param in found:
            if getattr(param, "_runtime_param", param) is None:
                annotation = getattr(getattr(param, "type_descriptor", None), "annotation", None)
                param._runtime_param = _Plain(_PLAIN.get(annotation))
        return found

    command.get_params = get_params
    for verb in getattr(command, "commands", {}).values():
        spare(verb)
    return command
