"""Quarantine: the ``failed`` folder. A source is kept there with the reason beside it, and can come back."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher.clock import stamp
from watcher.durable import (
    NAME_BYTES,
    cut_to_bytes,
    move_aside,
    sync_folder,
    write_whole,
)
from watcher.errors import NotAPicture
from watcher.volume import Anchor

SUFFIX = ".error.json"


@dataclass(frozen=True, slots=True)
class Case:
    """One source in quarantine."""

    path: Path
    rel: str  # where it was in its inbox
    inbox: Path
    reason: dict[str, Any]


def reason(code: str, what: str, remedy: str, attempts: int) -> dict[str, Any]:
    """The stable keys of a reason: what, why, when, attempts, what to do."""
    return {
        "code": code,
        "what": what,
        "when": stamp(),
        "attempts": attempts,
        "what_to_do": _advice(code, remedy),
    }


def _advice(code: str, remedy: str) -> str:
    if code == NotAPicture.code:
        return remedy  # no second try makes a picture of it
    if not remedy:
        return "If the picture opens elsewhere, save it again from there; then: depth-watcher retry NAME"
    return f"{remedy} Then: depth-watcher retry NAME"


class Quarantine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.anchor = Anchor(folder)

    def admit(
        self, source: Path, rel: str, inbox: Path, why: dict[str, Any], content: tuple[int, int] | None = None
    ) -> Path:
        """Move ``source`` here with ``<name>.error.json`` beside it; returns where it is.

        Raises ``OSError``; the source is back in its inbox then, so that it is tried again with its reason. Raises
        ``Replaced`` where ``content`` (size, mtime_ns) is given and something else is there; that stays.
        """
        self.anchor.create()
        place = (self.folder / rel).parent
        target = move_aside(source, place, source.name, content)
        try:
            self.explain(target, rel, inbox, why)
        except OSError:
            with contextlib.suppress(OSError):
                self.expel(target, source)
            raise
        return target

    def explain(self, target: Path, rel: str, inbox: Path, why: dict[str, Any]) -> None:
        """Write the reason beside a source that is here already."""
        text = {"source": rel, "inbox": str(inbox), **why}
        write_whole(_reason_path(target), json.dumps(text, indent=2).encode() + b"\n")

    def expel(self, target: Path, source: Path) -> None:
        """Undo ``admit``: back to the inbox, beside what may have been dropped there meanwhile. Raises ``OSError``."""
        move_aside(target, source.parent, source.name)
        with contextlib.suppress(FileNotFoundError):
            _reason_path(target).unlink()

    def explained(self, target: Path) -> bool:
        """Whether a source that is here has its reason beside it."""
        return os.path.lexists(_reason_path(target))

    def cases(self) -> Iterator[Case]:
        """Everything here that has a reason beside it."""
        for base, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                if not name.endswith(SUFFIX) or name.startswith("."):
                    continue
                case = _read_case(Path(base, name))
                if case is not None:
                    yield case

    def chosen(self, patterns: tuple[str, ...]) -> list[Case]:
        """The cases whose name or path fits a name or a glob."""
        return [case for case in self.cases() if any(_fits(case, self.folder, pattern) for pattern in patterns)]

    def release(self, case: Case) -> Path:
        """Back into the inbox, under its old name or the next free one. Raises ``OSError``."""
        Anchor(case.inbox).create()
        place = (case.inbox / case.rel).parent
        target = move_aside(case.path, place, os.path.basename(case.rel))
        with contextlib.suppress(FileNotFoundError):
            _reason_path(case.path).unlink()
            sync_folder(case.path.parent)
        return target


def _reason_path(target: Path) -> Path:
    name = target.name
    if len(os.fsencode(name)) + len(SUFFIX) > NAME_BYTES:
        mark = f"~{zlib.crc32(os.fsencode(name)):08x}"  # keeps two names apart that begin alike
        name = cut_to_bytes(name, NAME_BYTES - len(SUFFIX) - len(mark)) + mark
    return target.with_name(name + SUFFIX)


def _read_case(reason_path: Path) -> Case | None:
    """The case of one reason file; ``None`` where its source is gone, or where the file is not one of ours."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        found = json.loads(reason_path.read_bytes())
        rel, inbox = os.fspath(found["source"]), Path(found["inbox"])
        path = _source_path(reason_path)
        if path is not None and not os.path.isabs(rel) and ".." not in rel.split("/"):
            return Case(path, rel, inbox, found)
    return None


def _source_path(reason_path: Path) -> Path | None:
    exact = reason_path.with_name(reason_path.name.removesuffix(SUFFIX))
    if os.path.lexists(exact) and _reason_path(exact) == reason_path:
        return exact
    if len(os.fsencode(reason_path.name)) < NAME_BYTES - 3:  # it was not cut (a character has at most 4 bytes)
        return None
    beside = (reason_path.with_name(name) for name in os.listdir(reason_path.parent))
    return next((path for path in beside if _reason_path(path) == reason_path), None)


def _fits(case: Case, folder: Path, pattern: str) -> bool:
    names = (case.path.name, str(case.path), case.rel, os.path.basename(case.rel), os.path.relpath(case.path, folder))
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in names)
