"""One-off: maps for files named by hand. No inbox, no journal; the calling thread owns the session."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from watcher import config, depth, loader, rendering
from watcher.errors import (
    Blame,
    CannotCreate,
    FrameError,
    NameTaken,
    NoInput,
    UsageError,
    WatcherError,
    blame_of,
    by_hand,
    explain,
)
from watcher.frame import Frame, Raw, Source
from watcher.inbox import Inbox, identity_of
from watcher.network import Network
from watcher.origin import Origin, ours
from watcher.outbox import Outbox, Output
from watcher.session import Session


@dataclass(slots=True)
class Results:
    done: list[Path] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    notice: str = ""
    remarks: list[str] = field(default_factory=list)


def make(
    settings: config.Settings,
    files: Sequence[Path],
    target: Path | None,
    tell: Callable[[Path, Path | None, str], None],
) -> Results:
    """One map for each file, beside it or in ``target``; ``tell(file, map, error)`` after each.

    An unreadable picture does not stop the others. Raises ``NoInput`` before anything is done when a file is
    missing, ``CannotCreate`` when a map cannot be written, and what the session raises.
    """
    for file in files:
        if not file.is_file():
            what = "is a folder" if file.is_dir() else "is not there"
            raise NoInput(f"{file} {what}", "Name picture files; for whole folders there is `depth-watcher once`.")
    network = Network(settings)
    results = Results(notice=network.notice)
    if str(wanted := settings.folders[0].output.range).startswith("shot"):
        results.remarks.append(
            f"range: {wanted} is for shots in an inbox; here each map has the range of its own frame"
        )
    with network.open() as session:
        plan = network.plan(session.shape)
        about = network.about(session.report)
        bench = _Bench(session, plan, about, network.name)
        for file in files:
            try:
                made = _make_one(settings, file, target, bench)
            except Exception as error:
                if blame_of(error) is not Blame.FRAME:
                    raise
                what = str(error) if isinstance(error, WatcherError) else f"{type(error).__name__}: {error}"
                results.failed.append((file, what))
                tell(file, None, what)
            else:
                results.done.append(made)
                tell(file, made, "")
    return results


@dataclass(frozen=True, slots=True)
class _Bench:
    session: Session
    plan: depth.Plan
    about: dict[str, str]
    model: str
    published: dict[str, Path] = field(default_factory=dict)  # a map's name, as it is compared → of which file


def _make_one(settings: config.Settings, file: Path, target: Path | None, bench: _Bench) -> Path:
    output = settings.folders[0].output
    folder, name = Path(os.path.abspath(file.parent)), file.name
    try:
        identity = identity_of(os.stat(folder / name))
        source = Source(folder, name, name, identity)
        taken = Inbox(folder, recursive=False).read(source, settings.limits.max_file_mb * 1_000_000)
    except OSError as error:
        raise FrameError(f"it cannot be read: {explain(error)[0]}", by_hand(explain(error)[1])) from error
    loaded = loader.load(taken.data, bench.plan, settings.limits.max_pixels, output)
    facts = {"source": name, "source_bytes": len(taken.data), "source_sha256": taken.sha256, **loaded.facts}
    raw = Raw(
        Frame(0, source, 0, ""),
        bench.session.run(loaded.tensor),
        loaded.height_px,
        loaded.width_px,
        facts,
        loaded.aside,
    )
    outputs = rendering.render(raw, output, bench.about)
    outbox = Outbox(target or folder, output.name, bench.model)
    origin = Origin(name, len(taken.data), taken.sha256)
    if os.path.realpath(outbox.folder) == os.path.realpath(folder):
        origin = Origin(name)  # beside the picture a map of that name can be of no other, if of an earlier state
    try:
        return _publish(outbox, folder / name, outputs, origin, bench.published)
    except OSError as error:
        raise CannotCreate(f"the map of {file} cannot be written: {explain(error)[0]}", explain(error)[1]) from error


def _publish(
    outbox: Outbox, file: Path, outputs: tuple[Output, ...], origin: Origin, published: dict[str, Path]
) -> Path:
    """Under the first name that nothing has but an earlier map of the same picture, made by an earlier call."""
    data = {output.ending: output.data for output in outputs}
    for base in outbox.bases(file.name):
        key = unicodedata.normalize("NFC", str(outbox.folder / base)).casefold()
        there = ours(outbox, base, data, origin, data) if published.get(key, file) == file else None
        if there is None:
            continue
        if (outbox.folder / (base + outputs[0].ending)) == file:
            raise UsageError(f"the map of {file} would replace the picture itself", "Give another folder with -o.")
        try:
            made, *_ = outbox.publish(base, outputs, there)
        except NameTaken:
            continue
        published[key] = file
        return made
    raise AssertionError("unreachable: the names never end")
