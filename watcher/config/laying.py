"""What is laid over a document, and what is filled in under it, before it is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from watcher.config.paths import DEFAULT_INBOX, expand
from watcher.config.reading import PATH_KEYS, Document, KeyPath

_SECTIONS = ("watch", "model", "limits", "log", "api", "folders")


def override(document: Document, overrides: Mapping[str, Any]) -> None:
    """Lay dotted keys over the document. Paths among the values are made absolute against the current folder."""
    for dotted, value in overrides.items():
        if value is None:
            continue
        path: KeyPath = tuple(int(p) if p.isdigit() else p for p in re.findall(r"[^.\[\]]+", dotted))
        if path[0] == "folders" and document.data.get("folders") is None:
            document.data["folders"] = [{"inbox": DEFAULT_INBOX}]
        try:
            place: Any = document.data
            for step, after in pairwise(path):
                if isinstance(place, dict) and place.get(str(step)) is None and isinstance(after, str):
                    place[step] = {}
                place = place[step]
            place[path[-1]] = _typed(path[-1], value)
        except (LookupError, TypeError):
            document.refuse(0, "there is no such place in the settings to put a value", path)
            continue
        document.typed.add(path)


def _typed(key: str | int, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _typed(name, inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_typed(key, inner) for inner in value]
    is_path = key in PATH_KEYS or (key == "name" and str(value).lower().endswith(".onnx"))
    if isinstance(value, Path) or (isinstance(value, str) and value and is_path):
        try:
            return str(expand(str(value).replace("$", "$$"), Path.cwd())).replace("$", "$$")
        except ValueError:
            return str(value)
    return value


def fill(document: Document) -> None:
    """Sections whose keys are all commented out are there with nothing in them: they mean their defaults."""
    data = document.data
    for name in _SECTIONS:
        if data.get(name, "") is None:
            del data[name]
    data.setdefault("folders", [{"inbox": DEFAULT_INBOX}])
    entries = data["folders"] if isinstance(data["folders"], list) else []
    for holder, names in [(data.get("model"), ("coreml",)), *((entry, ("output", "ignore")) for entry in entries)]:
        for name in names:
            if isinstance(holder, dict) and holder.get(name, "") is None:
                del holder[name]
