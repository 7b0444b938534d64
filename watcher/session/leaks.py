"""Temporary models that a killed process left: the runtime removes them only on an orderly end, about 100 MB each.

Only what appeared while we loaded is ours; other programs of the user make files of the same prefix.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from watcher import durable
from watcher.clock import wall_s
from watcher.session.compiled import alive

_PREFIX = "onnxruntime-"
_NOTE = "temporary-"
_STALE_S = 3600.0


def sweep(notes: Path, place: Path | None = None) -> int:
    """Remove what dead processes of ours left in ``place`` (default: the temporary folder); returns how many."""
    place = place or Path(tempfile.gettempdir())
    removed = 0
    for note in sorted(notes.glob(f"{_NOTE}*.json")) if notes.is_dir() else []:
        pid = note.stem.removeprefix(_NOTE)
        if not pid.isdigit() or alive(int(pid)):
            continue
        left = [name for name in _names(note) if _is_there(place / name)]
        stale = [name for name in left if _is_stale(place / name)]
        for name in stale:
            removed += _remove(place / name)
        if len(stale) == len(left):
            note.unlink(missing_ok=True)
    return removed


@contextlib.contextmanager
def noted(notes: Path, place: Path | None = None) -> Iterator[None]:
    """Write down what of that prefix appears in ``place`` while this lasts."""
    place = place or Path(tempfile.gettempdir())
    before = _present(place)
    try:
        yield
    finally:
        note = notes / f"{_NOTE}{os.getpid()}.json"
        new = sorted((_present(place) - before) | set(_names(note)))
        if new:
            with contextlib.suppress(OSError):
                durable.write_whole(note, json.dumps(new).encode(), durable=False)


def _present(place: Path) -> set[str]:
    try:
        return {name for name in os.listdir(place) if name.startswith(_PREFIX)}
    except OSError:
        return set()


def _names(note: Path) -> list[str]:
    try:
        names = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [n for n in names if isinstance(n, str) and n.startswith(_PREFIX) and "/" not in n] if names else []


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _is_stale(path: Path) -> bool:
    with contextlib.suppress(OSError):
        facts = path.lstat()
        return facts.st_uid == os.getuid() and wall_s() - facts.st_mtime > _STALE_S
    return False


def _remove(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
    return not _is_there(path)
