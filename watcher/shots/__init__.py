"""Shots: frames that belong together share one range, so that what stands still keeps its value.

``shot``       raw maps are kept in the state folder until the shot has settled; then its range is written down and all
               of them are finished with it. Sources stay in the inbox until then.
``shot-live``  a running range with cut detection: every frame is finished at once.

Nothing here is in memory alone: a kept map, a range and a running range are files, each whole or absent. The finishers
take turns here (they hold a lock); intake settles a shot only while none of its frames is in work.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from watcher import depth
from watcher.durable import make_folder, write_whole
from watcher.frame import Raw, Source
from watcher.shots.keeping import ENDING, Kept, Note, note_of, packed, unpacked
from watcher.shots.naming import file_name, folder_of, record_name, shot_of
from watcher.shots.records import pair, told
from watcher.shots.running import RunningRanges
from watcher.volume import state_of

__all__ = ["Decision", "Kept", "Shots", "folder_of", "record_name", "shot_of"]

log = logging.getLogger(__name__)

_RANGE_FILE = "shot.json"
_RECORDS_MOST = 2000


@dataclass(frozen=True, slots=True)
class Decision:
    """How one frame is finished: ``ends`` of its range (``None``: its own), or ``kept`` until its shot has settled."""

    ends: tuple[float, float] | None = None
    mode: str = "frame"
    note: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class _Record:
    ends: tuple[float, float] | None
    frames: dict[str, list[int]]  # key → [size, mtime_ns]: the contents that the range was found from


class Shots:
    def __init__(self, folder: Path, maker: str, most_bytes: int) -> None:
        """``maker``: what made the raw maps (model, arithmetic); those of another are worth nothing."""
        self._folder = folder
        self._maker = maker
        self._most_bytes = most_bytes
        self._bytes = 0
        self._running = RunningRanges(maker)
        self.anchors: Mapping[Path, Callable[[], None]] = {}  # inbox → raises ``OSError`` where it is away now

    def prepare(self) -> None:
        """Look through what an earlier life left: count the kept maps, forget the oldest ranges beyond 2000."""
        self._bytes = self._counted()
        with contextlib.suppress(OSError):
            records = sorted(self._folder.glob(f"*/{_RANGE_FILE}"), key=lambda path: path.stat().st_mtime_ns)
            for path in records[: max(0, len(records) - _RECORDS_MOST)]:
                path.unlink()

    # -- finisher -------------------------------------------------------------------------------------------------

    def decide(self, raw: Raw, mode: str, outbox: Path) -> Decision:
        """What becomes of a frame whose raw map is here. Raises ``OSError`` where nothing can be kept now."""
        source = raw.frame.source
        shot = shot_of(source.rel)
        found = depth.quantiles(raw.depth)
        if shot is None or found is None:
            return Decision(note="" if found is None else "it belongs to no shot")
        if mode == "shot-live":
            ends = self._running.decide(self._place(source.inbox, shot), raw)
            return Decision(note="it has no depth") if ends is None else Decision(ends, "shot-live")
        locked = self.locked(outbox, shot)
        if locked is not None:
            return Decision(locked, "shot", "locked range")
        record = self._record(source.inbox, shot)
        if record is not None:
            seen = record.frames.get(source.key)
            if seen is None or tuple(seen) == source.identity.content:
                late = seen is None
                if late:
                    log.warning("%s: came after its shot had settled; it is clipped to the shot's range", raw.frame)
                return Decision(record.ends, "shot", "late: clipped to the range of its shot" if late else "")
            self._forget(source.inbox, shot)  # a second pass: new contents under the old names
        self._keep(raw, shot, packed(raw, found, self._maker))
        if self._bytes > self._most_bytes and self._counted() > self._most_bytes:
            log.warning("the kept maps of shots reach limits.shot_mb: %s settles now; later frames are clipped", shot)
            self.settle(source.inbox, shot)
            record = self._record(source.inbox, shot)
            if record is not None:
                return Decision(record.ends, "shot", "settled early: limits.shot_mb")
        return Decision(kept=True)

    def _keep(self, raw: Raw, shot: str, data: bytes) -> None:
        path = self._file(raw.frame.source, shot)
        make_folder(path.parent)
        write_whole(path, data)
        self._bytes += len(data)

    def finished(self, source: Source, outbox: Path) -> None:
        """The frame's map is durable: its kept map goes, and the shot's range is written down beside the maps."""
        shot = shot_of(source.rel)
        if shot is None:
            return
        path = self._file(source, shot)
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            self._bytes -= size
        try:
            self._write_beside(source.inbox, shot, outbox)
        except OSError as error:
            log.warning("the range of the shot %s cannot be written down: %s", shot, error)

    def _write_beside(self, inbox: Path, shot: str, outbox: Path) -> None:
        """Raises ``OSError``; a file that cannot be read may be locked, and is not replaced."""
        record = self._record(inbox, shot)
        if record is None or record.ends is None:
            return
        beside = outbox / record_name(shot)
        before = told(beside)
        if before is not None and (before.get("locked") is True or before.get("range") == list(record.ends)):
            return
        facts = {"shot": shot, "range": record.ends, "frames": len(record.frames), "made_by": self._maker}
        write_whole(beside, json.dumps({**facts, "locked": False}, indent=2).encode() + b"\n")

    def finished_live(self, source: Source) -> None:
        """The map of a frame with a running range is durable: it will not be decided about again."""
        shot = shot_of(source.rel)
        if shot is not None:
            self._running.finished(self._place(source.inbox, shot), source)

    # -- loader ---------------------------------------------------------------------------------------------------

    def kept(self, source: Source) -> Kept | None:
        """The raw map that was made of exactly this content before."""
        shot = shot_of(source.rel)
        return None if shot is None else unpacked(self._file(source, shot), source, self._maker)

    # -- intake ---------------------------------------------------------------------------------------------------

    def waits(self, source: Source) -> bool:
        """Whether the raw map of this content is kept for a shot that has not settled; yes where the disk is silent."""
        shot = shot_of(source.rel)
        if shot is None:
            return False
        try:
            settled = state_of(self._place(source.inbox, shot) / _RANGE_FILE) is not None
            return not settled and state_of(self._file(source, shot)) is not None
        except OSError:
            return True  # the end of its shot brings it into view again, whatever is found to be kept then

    def has_settled(self, inbox: Path, shot: str) -> bool:
        """Raises ``OSError`` where that cannot be read."""
        return self._record(inbox, shot) is not None

    def settle(self, inbox: Path, shot: str) -> list[str]:
        """Write down the range of what is kept; returns the keys of sources that left the inbox meanwhile.

        Raises ``OSError`` where it cannot be written, or the inbox or a kept map cannot be looked at; whatever was
        kept is still kept then.
        """
        notes, gone, worthless = [], [], []
        for path in self._kept_maps(inbox, shot):
            note = note_of(path, self._maker)
            if note is not None and _is_there(inbox, note):
                notes.append(note)
                continue
            if note is not None:
                gone.append(note.key)
            worthless.append(path)
        if gone:
            self.anchors.get(inbox, lambda: None)()
        if notes:
            self._write_range(inbox, shot, notes)
        for path in worthless:
            with contextlib.suppress(OSError):
                path.unlink()
        return gone

    def _write_range(self, inbox: Path, shot: str, notes: list[Note]) -> None:
        ends = depth.of_shot([note.quantiles for note in notes])
        frames = {note.key: list(note.identity.content) for note in notes}
        record = {"shot": shot, "range": ends, "maker": self._maker, "frames": frames}
        write_whole(self._place(inbox, shot) / _RANGE_FILE, json.dumps(record).encode())
        log.info("shot %s has settled: %d frames%s", shot, len(notes), ", range {:g} to {:g}".format(*ends or (0, 0)))

    # -- files ----------------------------------------------------------------------------------------------------

    def _place(self, inbox: Path, shot: str) -> Path:
        return self._folder / file_name(f"{inbox}|{shot}")

    def _file(self, source: Source, shot: str) -> Path:
        size, mtime_ns = source.identity.content
        return self._place(source.inbox, shot) / f"{file_name(source.key)}.{size}.{mtime_ns}{ENDING}"

    def _kept_maps(self, inbox: Path, shot: str) -> list[Path]:
        """Raises ``OSError``: a folder that cannot be listed is not an empty one."""
        place = self._place(inbox, shot)
        try:
            return [place / name for name in sorted(os.listdir(place)) if name.endswith(ENDING)]
        except FileNotFoundError:
            return []

    def _record(self, inbox: Path, shot: str) -> _Record | None:
        found = told(self._place(inbox, shot) / _RANGE_FILE)
        if found is None or found.get("maker") != self._maker or not isinstance(found.get("frames"), dict):
            return None
        return _Record(pair(found.get("range")), found["frames"])

    def _forget(self, inbox: Path, shot: str) -> None:
        (self._place(inbox, shot) / _RANGE_FILE).unlink(missing_ok=True)

    def locked(self, outbox: Path, shot: str) -> tuple[float, float] | None:
        """The range beside the maps, where somebody has set its ``locked`` to true."""
        found = told(outbox / record_name(shot))
        return pair(found.get("range")) if found is not None and found.get("locked") is True else None

    def _counted(self) -> int:
        total = 0
        with contextlib.suppress(OSError):
            for path in self._folder.glob(f"*/*{ENDING}"):
                with contextlib.suppress(OSError):
                    total += path.stat().st_size
        self._bytes = total
        return total


def _is_there(inbox: Path, note: Note) -> bool:
    """Raises ``OSError`` where the inbox does not say."""
    state = state_of(inbox / note.rel)
    return state is not None and (state.st_size, state.st_mtime_ns) == note.identity.content
