"""Album: what the journal knows of the last maps and failures, small pictures of the former, a way back for the latter.

No name that anybody sends becomes a path: a thumbnail is asked for by the number of its row, a retry by a name that is
compared with those of the quarantine.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from watcher import comeback, config, imagefile
from watcher.clock import stamp
from watcher.durable import numbered
from watcher.errors import FrameError, explain
from watcher.frame import readable
from watcher.journal import JOURNAL_FILE, Journal, Row
from watcher.quarantine import Quarantine
from watcher.web.door import Refused

MAPS_SHOWN = 12
FAILURES_SHOWN = 50
_THUMBNAIL_PX = 200
_KEPT = 64
_NAMES_TRIED = 20
_FILE_MOST = 200_000_000


class Album:
    def __init__(self, settings: config.Settings, state_dir: Path) -> None:
        self._settings = settings
        self._state_dir = state_dir
        self._kept: OrderedDict[tuple[int, str, float | None], bytes] = OrderedDict()
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def _journal(self) -> Iterator[Journal]:
        journal = Journal(self._state_dir / JOURNAL_FILE)
        try:
            yield journal
        finally:
            journal.close()

    def shown(self) -> dict[str, Any]:
        """The last maps and failures as JSON values."""
        with self._journal() as journal:
            done, failed = journal.last_done(MAPS_SHOWN), journal.last_failures(FAILURES_SHOWN)
        return {
            "maps": [
                {
                    "id": row.id,
                    "name": readable(row.rel),
                    "map": readable(Path(maps[0]).name),
                    "when": stamp(row.ended_at),
                }
                for row, maps in done
                if maps
            ],
            "failures": [
                {
                    "name": readable(row.rel),
                    "what": str((row.reason or {}).get("what", "")),
                    "remedy": str((row.reason or {}).get("what_to_do", "")),
                    "when": stamp(row.ended_at),
                }
                for row in failed
            ],
        }

    def thumbnail(self, row_id: int, side: str) -> bytes:
        """A small JPEG of a map (``side`` "map") or of its picture ("picture"). Raises ``Refused`` for unknown ones."""
        with self._journal() as journal:
            known = {row.id: (row, maps) for row, maps in journal.last_done(MAPS_SHOWN * 4)}
        if row_id not in known or side not in ("map", "picture"):
            raise Refused(404, "unknown", "there is no such thumbnail")
        row, maps = known[row_id]
        key = (row_id, side, row.ended_at)
        with self._one_at_a_time:
            if key not in self._kept:
                paths = [Path(maps[0])] if side == "map" and maps else self._where_pictures_are(row)
                self._kept[key] = _small(paths)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return self._kept[key]

    def _where_pictures_are(self, row: Row) -> list[Path]:
        folders = [folder for folder in self._settings.folders if folder.inbox == row.inbox]
        places = [place / row.rel for folder in folders for place in (folder.processed, folder.inbox)]
        return [path for place in places for path in _numbered(place) if _is_of(path, row)]

    def bring_back(self, name: str) -> str:
        """One failed picture goes back to its inbox; returns its name there. Raises ``Refused``."""
        for folder in self._settings.folders:
            room = Quarantine(folder.failed)
            for case in room.cases():
                if readable(case.rel) == name and case.inbox == folder.inbox:
                    try:
                        return comeback.bring_back(self._state_dir, room, case).name
                    except OSError as error:
                        raise Refused(503, "not-now", *explain(error), after_s=5) from None
        raise Refused(404, "unknown", "no failed picture has this name", "The status page lists them.")


def _numbered(place: Path) -> Iterator[Path]:
    """Where a picture of that name may have been put away."""
    return (place.with_name(name) for name in itertools.islice(numbered(place.name), _NAMES_TRIED))


def _is_of(path: Path, row: Row) -> bool:
    try:
        return row.put_away_as(os.stat(path))
    except OSError:
        return False


def _small(paths: list[Path]) -> bytes:
    for path in paths:
        try:
            if path.stat().st_size > _FILE_MOST:
                continue
            picture = imagefile.decode(path.read_bytes(), max_pixels=100_000_000, min_side_px=_THUMBNAIL_PX)
        except (OSError, FrameError):
            continue
        return imagefile.thumbnail(picture.pixels, _THUMBNAIL_PX)
    raise Refused(404, "unknown", "the file is not there any more")
