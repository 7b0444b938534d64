"""Folders: are they there, can they be read and written, and what kind of disk are they on?"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from watcher import config, durable, status, volume
from watcher.agent import protected
from watcher.config import Folder
from watcher.doctor.finding import Finding, State
from watcher.errors import explain, explained
from watcher.inbox import is_dataless

_MAC: bool = sys.platform == "darwin"
_LITTLE_BYTES = 1 << 30

# What a look at one place says: how well it is, what was found, and what to do.
Told = tuple[State, str, str]


def state(settings: config.Settings) -> Iterator[Finding]:
    """The state folder, its lock, and the log."""
    folder = config.state_dir(settings)
    why = "The journal lives there; without it nothing is decided."
    yield _tried("state-folder", "state folder", why, lambda: _writable(folder))
    yield _tried("daemon", "daemon", "Only one process may work on a state folder.", lambda: _daemon(folder))
    log = config.log_file(settings)
    yield _tried("log", "log", "What happened stands in the log.", lambda: _log(log))


def folder(number: int, settings: Folder, observer: str = "auto") -> Iterator[Finding]:
    """One entry of ``folders``, counted from 1. ``observer`` is ``watch.observer`` of the settings."""
    name, inbox = f"folder-{number}", settings.inbox
    yield _tried(f"{name}-inbox", f"inbox {number}", "Pictures are taken from there.", lambda: _inbox(settings))
    why = "Maps are put there."
    yield _tried(f"{name}-outbox", f"outbox {number}", why, lambda: _writable(settings.outbox))
    why = "Pictures that cannot become maps are kept there, with their reasons."
    yield _tried(f"{name}-failed", f"failed {number}", why, lambda: _writable(settings.failed))
    if settings.after == "move":
        why = "Sources go there when their maps are safe."
        yield _tried(f"{name}-processed", f"processed {number}", why, lambda: _processed(settings))
    why = "A full disk holds frames back."
    yield _tried(f"{name}-space", f"free space {number}", why, lambda: _space(settings.outbox))
    why = "It decides how changes are noticed, and which names are one file."
    yield _tried(f"{name}-volume", f"volume {number}", why, lambda: _volume(inbox, observer))
    paths = (inbox, settings.outbox, settings.processed, settings.failed)
    if _MAC and (guarded := {place: path for path in paths if (place := protected.guarded(path))}):
        found = "; ".join(f"{path} lies in {place}" for place, path in guarded.items()) + ": macOS guards it"
        why = "A program that starts at login may be refused there although it works in a terminal."
        yield Finding(f"{name}-privacy", f"privacy {number}", "warning", found, why, protected.clicks())


def _tried(name: str, title: str, why: str, look: Callable[[], Told]) -> Finding:
    """Whatever the system refuses is a problem of this one place; the others are still looked at."""
    try:
        state, found, remedy = look()
    except NotADirectoryError as error:
        found = f"{error.filename} is no folder, and stands where one is needed"
        return Finding(name, title, "problem", found, why, "Move it away, or name another folder in the settings.")
    except OSError as error:
        found, remedy = explain(error)
        if error.errno not in explained():
            remedy = "Name another place in the settings."  # "it is tried again" is for a daemon to say
        return Finding(name, title, "problem", found, why, remedy)
    return Finding(name, title, state, found, why, remedy)


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that is there.

    Raises ``NotADirectoryError`` where a file, or a link that leads nowhere, stands in the way, and ``OSError``
    where the volume is not mounted, or the system does not even say what is there.
    """
    if (missing := volume.absent(folder)) is not None:
        raise OSError(errno.ENXIO, "the volume is not mounted", str(missing))
    for place in (folder, *folder.parents):
        try:
            if stat.S_ISDIR(os.stat(place).st_mode):
                return place
        except (FileNotFoundError, NotADirectoryError):
            if not os.path.lexists(place):
                continue
        raise NotADirectoryError(errno.ENOTDIR, "no folder", str(place))
    return folder


def _inbox(settings: Folder) -> Told:
    """Listing is not enough: a system may let us list a folder and refuse every file in it."""
    inbox = settings.inbox
    if _nearest(inbox) != inbox:
        _write_probe(inbox)
        return "ok", f"{inbox} (is made at the first start)", ""
    with os.scandir(inbox) as entries:
        first = next((entry for entry in entries if _is_here(entry)), None)
    if first is not None:
        with open(first.path, "rb") as file:
            file.read(1)
    if settings.after != "keep" and not os.access(inbox, os.W_OK | os.X_OK):
        remedy = "Give this user the right to write there, or set after: keep."
        return "problem", f"{inbox} can be read, but pictures cannot be taken out of it", remedy
    return "ok", str(inbox), ""


def _is_here(entry: os.DirEntry[str]) -> bool:
    """A file whose bytes are on this machine: opening one that is only in iCloud would download it."""
    return entry.is_file(follow_symlinks=False) and not is_dataless(entry.stat(follow_symlinks=False))


def _writable(folder: Path) -> Told:
    place = _write_probe(folder)
    return "ok", str(folder) if place == folder else f"{folder} (is made when needed)", ""


def _write_probe(folder: Path) -> Path:
    """Write where the folder is, or will be made; nothing stays behind. Gives back where. Raises ``OSError``."""
    place = _nearest(folder)
    probe = place / durable.temporary_name("depth-watcher-doctor")
    try:
        durable.write_new(probe, b"probe", durable=False)
    except OSError as error:
        error.filename = str(place)  # nobody has heard of the hidden name
        raise
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    return place


def _daemon(state_dir: Path) -> Told:
    note = durable.holder(state_dir / status.LOCK_FILE)
    return "ok", f"process {note}" if note else "no daemon runs on this state folder", ""


def _log(log: Path) -> Told:
    _write_probe(log.parent)  # it is renamed there when it has grown
    if not log.exists():
        return "ok", f"{log} (is made when needed)", ""
    os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))
    return "ok", f"{log} ({log.stat().st_size / 1e6:.1f} MB; it turns over by itself)", ""


def _space(outbox: Path) -> Told:
    free = volume.free_bytes(_nearest(outbox))
    little = free < _LITTLE_BYTES
    remedy = "Make room: a 16-bit map of 12 megapixels takes about 10 MB." if little else ""
    return "warning" if little else "ok", f"{free / 1e9:.1f} GB", remedy


def _processed(settings: Folder) -> Told:
    told = _writable(settings.processed)
    if volume.same_volume(_nearest(settings.inbox), _nearest(settings.processed)):
        return told
    found = f"{settings.processed} is on another volume than the inbox"
    remedy = "It works, but sources are copied there and not renamed: name a folder on the inbox's volume."
    return "warning", found, remedy


def _volume(inbox: Path, observer: str) -> Told:
    place = _nearest(inbox)
    case = "names that differ only in case are one file" if volume.ignores_case(place) else "case tells names apart"
    if not volume.is_network(place):
        return "ok", f"on this machine; {case}", ""
    if observer == "native":
        remedy = "Set watch.observer to auto; until then only the rescan finds what other machines drop."
        return "warning", f"a network volume, watched by events, which only this machine raises; {case}", remedy
    return "ok", f"a network volume, looked at again and again, because its changes raise no events; {case}", ""
