"""Folders: are they there, can they be read and written, and what kind of disk are they on?"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from watcher import config, durable, status, volume
from watcher.agent import protected
from watcher.config import Folder
from watcher.doctor.finding import Finding, State
from watcher.errors import explain

_MAC: bool = sys.platform == "darwin"
_LITTLE_BYTES = 1 << 30


def state(settings: config.Settings) -> Iterator[Finding]:
    """The state folder, its lock, and the log."""
    folder = config.state_dir(settings)
    why = "The journal lives there; without it nothing is decided."
    yield _tried("state-folder", "state folder", why, folder, lambda: _write_probe(folder))
    note = durable.holder(folder / status.LOCK_FILE)
    found = f"process {note}" if note else "no daemon runs on this state folder"
    yield Finding("daemon", "daemon", "ok", found, "Only one process may work on a state folder.")
    log = config.log_file(settings)
    yield _tried("log", "log", "What happened stands in the log.", log, lambda: _write_probe(log.parent))


def folder(number: int, settings: Folder) -> Iterator[Finding]:
    """One entry of ``folders``."""
    inbox, outbox = settings.inbox, settings.outbox
    name = f"folder-{number}"
    yield _tried(
        f"{name}-inbox", f"inbox {number}", "Pictures are taken from there.", inbox, lambda: _read_probe(inbox)
    )
    writable = "It has to be writable."
    yield _tried(f"{name}-outbox", f"outbox {number}", writable, outbox, lambda: _write_probe(outbox))
    failed = settings.failed
    yield _tried(f"{name}-failed", f"failed {number}", writable, failed, lambda: _write_probe(failed))
    yield _space(f"{name}-space", number, outbox)
    if settings.after == "move":
        yield _processed(f"{name}-processed", number, settings)
    if volume.is_network(_nearest(inbox)):
        found = f"{inbox} is on a network volume; it is looked at every two seconds"
        yield Finding(f"{name}-volume", f"volume {number}", "ok", found, "Changes by other machines raise no events.")
    for path in (inbox, outbox):
        if _MAC and (guarded := protected.guarded(path)):
            yield _protection(f"{name}-privacy", number, path, guarded)


def _tried(name: str, title: str, why: str, path: Path, probe: Callable[[], str]) -> Finding:
    try:
        return Finding(name, title, "ok", f"{path}{probe()}", why)
    except OSError as error:
        what, remedy = explain(error)
        return Finding(name, title, "problem", f"{path}: {what}", why, remedy)


def _nearest(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path


def _read_probe(inbox: Path) -> str:
    """Listing is not enough: a system may let us list a folder and refuse every file in it."""
    if not inbox.is_dir():
        _write_probe(inbox)
        return " (is made at the first start)"
    with os.scandir(inbox) as entries:
        first = next((entry for entry in entries if entry.is_file(follow_symlinks=False)), None)
    if first is not None:
        with open(first.path, "rb") as file:
            file.read(1)
    return ""


def _write_probe(folder: Path) -> str:
    """Write where the folder is, or will be made; nothing stays behind."""
    place = _nearest(folder)
    probe = place / durable.temporary_name("depth-watcher-doctor")
    try:
        durable.write_new(probe, b"probe", durable=False)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return "" if place == folder else " (is made when needed)"


def _space(name: str, number: int, outbox: Path) -> Finding:
    free = volume.free_bytes(_nearest(outbox))
    state: State = "ok" if free >= _LITTLE_BYTES else "warning"
    remedy = "" if state == "ok" else "Make room: a 16-bit map of 12 megapixels takes about 10 MB."
    return Finding(
        name, f"free space {number}", state, f"{free / 1e9:.1f} GB", "A full disk holds frames back.", remedy
    )


def _processed(name: str, number: int, settings: Folder) -> Finding:
    why = "Where sources go afterwards."
    one, other = (os.stat(_nearest(path)).st_dev for path in (settings.inbox, settings.processed))
    if one == other:
        return Finding(name, f"processed {number}", "ok", str(settings.processed), why)
    found = f"{settings.processed} is on another volume than the inbox"
    return Finding(name, f"processed {number}", "warning", found, why, "Sources are copied there, which takes longer.")


def _protection(name: str, number: int, path: Path, guarded: str) -> Finding:
    found = f"{path} lies in {guarded}, which macOS guards"
    why = "A program that starts at login may be refused there although it works in a terminal."
    return Finding(name, f"privacy {number}", "warning", found, why, protected.clicks())
