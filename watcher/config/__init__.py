"""Settings: one commented YAML file in, checked and frozen values out, or every mistake in it at once.

Nothing here acts: no folder is made, no log is opened, and importing the room loads neither YAML nor the
validation library, so that verbs which need no settings answer at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from watcher.config.places import default_text, find, locks_dir, log_file, models_dir, state_dir, user_file
from watcher.errors import ConfigError

if TYPE_CHECKING:
    from watcher.config.outputs import Output
    from watcher.config.reading import Problem
    from watcher.config.settings import Api, CoreML, Folder, Limits, Log, Model, Settings, Watch

__all__ = [
    "Api",
    "CoreML",
    "Folder",
    "Limits",
    "Log",
    "Model",
    "Output",
    "Settings",
    "Watch",
    "default_text",
    "find",
    "glimpse_of_state_dir",
    "load",
    "locks_dir",
    "log_file",
    "models_dir",
    "schema",
    "show",
    "state_dir",
    "user_file",
]

_CLASSES = frozenset({"Api", "CoreML", "Folder", "Limits", "Log", "Model", "Output", "Settings", "Watch"})


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module("watcher.config.settings"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(path: Path | None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of one file (``None``: the defaults alone), with ``overrides`` on top.

    ``overrides`` maps dotted keys (``model.name``, ``folders[0].inbox``) to values; a value of ``None`` means
    "not given". Paths in the file are relative to the file's folder, paths in overrides to the current folder.

    Raises ``ConfigError`` with one line in ``problems`` for each mistake: syntax, duplicate and unknown keys,
    types, ranges, and folders that would eat each other.
    """
    # Its plugins would be looked for in every installed package, at each start; we have none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from pydantic import ValidationError

    from watcher.config import eating, laying, reading
    from watcher.config.settings import Settings

    base = path.absolute().parent if path else Path.cwd()
    document = reading.read(path) if path else reading.Document()
    laying.override(document, overrides or {})
    laying.fill(document)
    found = list(document.problems)
    settings = None
    if document.readable:
        try:
            settings = Settings.model_validate(document.data, context={"base": base})
        except ValidationError as error:
            from watcher.config import problems

            found += problems.spell(error, document)
        found += eating.check(document, base)
    if found or settings is None:
        raise _refusal(path, found)
    return settings


def glimpse_of_state_dir(path: Path | None) -> Path | None:
    """Where the state of a file's settings is, from that one key alone; ``None`` where it takes ``load`` to tell."""
    from watcher.config import glimpse

    return glimpse.state_dir(path)


def _refusal(path: Path | None, found: list[Problem]) -> ConfigError:
    from watcher.config.problems import render

    lines = render(found)
    count = "a mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    what = f"There is {count} in {path}" if path and len(lines) == 1 else f"There are {count} in {path}"
    if path is None:
        what = f"The settings hold {count}"
    return ConfigError(what, "Correct what is listed; `depth-watcher config check` looks again.", lines)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the configuration file, with a description for every key."""
    from watcher.config.problems import json_schema

    return json_schema()


def show(settings: Settings) -> str:
    """The effective settings as YAML: every key, paths absolute. Loading it again gives equal settings."""
    from watcher.config.reading import dump

    return dump(settings.model_dump(mode="json"))
