"""Origin: of which picture is a map that lies in an outbox? It says so itself, also to whoever has never seen it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from watcher.errors import may_be_one_place
from watcher.frame import readable
from watcher.imagefile import read_facts
from watcher.outbox import Outbox

_SIDECAR_BYTES = 1 << 20  # the most that one of ours has


@dataclass(frozen=True, slots=True)
class Origin:
    """Which content of which source. ``size`` ``None``: whatever content; ``sha256`` "": nobody has read it yet."""

    source: str
    size: int | None = None
    sha256: str = ""


def ours(
    outbox: Outbox, base: str, endings: Iterable[str], origin: Origin, data: Mapping[str, bytes] | None = None
) -> tuple[str, ...] | None:
    """With which ``endings`` there are files of ``origin`` under the name; ``None`` where one is of something else.

    The map itself, which comes first, speaks for all that is beside it; where it is not there, each speaks for itself.
    ``data``: what is to be written with each ending; a file that is that already is as good as ours.
    Raises ``OSError`` where it cannot be told now; a file that may not be read at all is not ours.
    """
    first, *_ = endings = tuple(endings)
    there = outbox.there(base, endings)
    asked = (first,) if first in there else there
    place = outbox.folder
    if all(_is_of(place / (base + ending), origin) or _is(place / (base + ending), data, ending) for ending in asked):
        return there
    return None


def _is_of(path: Path, origin: Origin) -> bool:
    try:
        facts = _facts(path)
    except OSError as error:
        if may_be_one_place(error):
            return False
        raise
    same = "source" in facts and readable(facts["source"]) == readable(origin.source)
    same = same and (origin.size is None or facts.get("source_bytes") == str(origin.size))
    return same and origin.sha256 in ("", facts.get("source_sha256", origin.sha256))


def _facts(path: Path) -> Mapping[str, str]:
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        return {}
    if path.suffix != ".json":
        return read_facts(path) or {}
    try:
        found = json.loads(path.read_bytes()) if state.st_size <= _SIDECAR_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _is(path: Path, data: Mapping[str, bytes] | None, ending: str) -> bool:
    if data is None:
        return False
    try:
        return os.stat(path).st_size == len(data[ending]) and path.read_bytes() == data[ending]
    except OSError as error:
        if may_be_one_place(error):
            return False
        raise
