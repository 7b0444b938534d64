"""Folders that would eat each other: a map that lands in an inbox becomes a frame, whose map becomes a frame …

The check works on what the file says, so that it tells its findings beside all other mistakes. Folders are compared
by where they really are: links and ``..`` followed, composed and decomposed letters equal, upper and lower case
equal where the volume says so, and by device and inode where both exist.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watcher.config.paths import beside, expand, stands_alone
from watcher.config.places import default_state_dir
from watcher.config.reading import Document, KeyPath, Problem, one_line

_TARGETS = ("outbox", "processed", "failed")


@dataclass(frozen=True)
class _Spot:
    """One folder that the settings name. ``given``: by the user, not by default."""

    path: KeyPath
    where: Path
    given: bool = True

    @property
    def key(self) -> str:
        return str(self.path[-1])


@dataclass(frozen=True)
class _Entry:
    inbox: _Spot
    targets: tuple[_Spot, ...]
    recursive: bool


def check(document: Document, base: Path) -> list[Problem]:
    """Every pair of folders that cannot be; spots that cannot be read as paths are left to the other checks."""
    entries = _entries(document.data, base)
    inboxes = [entry.inbox for entry in entries]
    found: list[Problem] = []

    def tell(spot: _Spot, text: str, example: Path | None = None) -> None:
        hint = f"; for example: {one_line(spot.key, str(example).replace('$', '$$'))}" if example else ""
        found.append(Problem(document.line_of(spot.path), spot.path, f"{spot.where} {text}{hint}"))

    for index, entry in enumerate(entries):
        for earlier in inboxes[:index]:
            if reason := _between_inboxes(entry.inbox, earlier):
                tell(entry.inbox, reason)
        if stands_alone(entry.inbox.where) and not all(spot.given for spot in entry.targets):
            missing = " and ".join(spot.key for spot in entry.targets if not spot.given)
            tell(entry.inbox, f"is a volume of its own with nothing beside it; say where {missing} shall be")
            continue
        for spot in entry.targets:
            if reason := _of_target(spot, entry, entries):
                tell(spot, reason, beside(entry.inbox.where, spot.key))
    state = _spot(document.data, ("state_dir",), base) or _Spot(("state_dir",), default_state_dir(), given=False)
    for inbox in inboxes:
        if inside(state.where, inbox.where):
            culprit = state if state.given else inbox
            tell(culprit, f"cannot be: the state folder {state.where} would lie in the inbox {inbox.where}")
    for spot in [*inboxes, *(spot for entry in entries for spot in entry.targets), state]:
        if os.path.exists(spot.where) and not os.path.isdir(spot.where):
            tell(spot, "is a file, not a folder; name a folder")
    return found


def _between_inboxes(inbox: _Spot, earlier: _Spot) -> str:
    other = f"folders[{earlier.path[1]}].inbox ({earlier.where})"
    if same(inbox.where, earlier.where):
        return f"is the same folder as {other}; one inbox, one entry"
    if inside(inbox.where, earlier.where):
        return f"lies inside {other}; every frame would be done twice"
    if inside(earlier.where, inbox.where):
        return f"holds {other}; every frame would be done twice"
    return ""


def _of_target(spot: _Spot, entry: _Entry, entries: list[_Entry]) -> str:
    for other in (each.inbox for each in entries):
        whose = "the inbox" if other is entry.inbox else f"folders[{other.path[1]}].inbox"
        if same(spot.where, other.where):
            return f"is {whose} itself; what is put there would be taken for new frames"
        if inside(spot.where, other.where):
            return f"lies inside {whose} ({other.where}); what is put there would be taken for new frames"
        if entry.recursive and inside(other.where, spot.where):
            return (
                f"holds {whose} ({other.where}); a sub-folder of that name would be mirrored into it. "
                f"Choose another folder, or recursive: false"
            )
    if spot.key != "failed":
        return ""
    for other in (each for every in entries for each in every.targets if each.key != "failed"):
        if same(spot.where, other.where):
            return f"is folders[{other.path[1]}].{other.key} as well; failed frames could not be told from the others"
    return ""


def _entries(data: dict[str, Any], base: Path) -> list[_Entry]:
    entries = data.get("folders")
    found = []
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        inbox = _spot(data, ("folders", index, "inbox"), base)
        if inbox is None:
            continue
        targets = []
        for key in _TARGETS:
            path: KeyPath = ("folders", index, key)
            spot = _spot(data, path, base)
            if spot is None and key not in entry:
                spot = _Spot(path, beside(inbox.where, key), given=False)
            targets += [spot] if spot else []
        found.append(_Entry(inbox, tuple(targets), entry.get("recursive") is not False))
    return found


def _spot(data: Any, path: KeyPath, base: Path) -> _Spot | None:
    for step in path:
        try:
            data = data[step]
        except (LookupError, TypeError):
            return None
    try:
        return _Spot(path, expand(data, base)) if isinstance(data, str) else None
    except ValueError:
        return None


def same(one: Path, other: Path) -> bool:
    """True when both are one folder, whatever they are called."""
    return inside(one, other) and inside(other, one)


def inside(inner: Path, outer: Path) -> bool:
    """True when ``inner`` is ``outer`` or lies anywhere below it. Neither has to exist."""
    fold = _folds(outer)
    ours, theirs = _parts(inner, fold), _parts(outer, fold)
    if ours[: len(theirs)] == theirs:
        return True
    real = Path(os.path.realpath(inner))
    return any(_is_one(each, outer) for each in (real, *real.parents))


def _parts(path: Path, fold: bool) -> tuple[str, ...]:
    text = unicodedata.normalize("NFC", os.path.realpath(path))
    return Path(text.casefold() if fold else text).parts


def _folds(path: Path) -> bool:
    """Whether the volume takes upper and lower case for one: asked of the nearest name that exists and has a case."""
    real = Path(os.path.realpath(path))
    for each in (real, *real.parents):
        if each.name.swapcase() != each.name and os.path.exists(each):
            return _is_one(each, each.with_name(each.name.swapcase()))
    return sys.platform == "darwin"


def _is_one(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
