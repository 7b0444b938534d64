"""Running ranges: one small file for each live shot, written whole with every frame that is decided about.

It holds the range so far, and which frames were given which range and are not known to be done. A frame may come again
after it was decided about: its map could not be written, or the process was killed. Then it has the range that it had,
and the range so far does not move towards it a second time.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from watcher import depth
from watcher.durable import make_folder, write_whole
from watcher.frame import Raw, Source
from watcher.shots.records import told

_FILE = "live.json"
_GIVEN_MOST = 256  # as many frames may be held up at once; of more, the first are decided about anew
_DONE_MOST = 1024

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Given:
    """The range that one content was given."""

    key: str
    content: tuple[int, int]  # (size, mtime_ns)
    ends: Ends


class RunningRanges:
    def __init__(self, maker: str) -> None:
        """``maker``: what made the raw maps; a range of another's is worth nothing."""
        self._maker = maker
        self._done: set[tuple[str, str, tuple[int, int]]] = set()  # until their shot's file is written the next time

    def decide(self, place: Path, raw: Raw) -> Ends | None:
        """The range of a frame, ``place`` being the folder of its shot; ``None``: it has no depth.

        Raises ``OSError``; nothing has moved then.
        """
        found = told(place / _FILE) or {}
        running, all_given = self._told(found)
        given = [each for each in all_given if (str(place), each.key, each.content) not in self._done]
        key, content = raw.frame.source.key, raw.frame.source.identity.content
        for each in given:
            if (each.key, each.content) == (key, content):
                return each.ends
        now = running.after(raw.depth) if running is not None else depth.first(raw.depth)
        if now is None:
            return None
        given = [*(each for each in given if each.key != key), _Given(key, content, (now.low, now.high))]
        self._write(place, now, given[-_GIVEN_MOST:])
        self._done.difference_update((str(place), each.key, each.content) for each in all_given)
        return now.low, now.high

    def finished(self, place: Path, source: Source) -> None:
        """From any thread: its map is durable, so it does not come again; the same content dropped anew is new."""
        if len(self._done) >= _DONE_MOST:
            self._done.clear()  # what is forgotten here is only remembered for longer in the file
        self._done.add((str(place), source.key, source.identity.content))

    def _told(self, found: dict[str, Any]) -> tuple[depth.Running | None, list[_Given]]:
        if found.get("maker") != self._maker:
            return None, []
        with contextlib.suppress(KeyError, TypeError, ValueError):
            signature = tuple(map(float, found["signature"]))
            if len(signature) == depth.SIGNATURE_FIELDS:
                return depth.Running(float(found["low"]), float(found["high"]), signature), _given(found.get("given"))
        return None, []

    def _write(self, place: Path, now: depth.Running, given: list[_Given]) -> None:
        frames = [[each.key, *each.content, *each.ends] for each in given]
        make_folder(place)
        text = json.dumps({**asdict(now), "maker": self._maker, "given": frames})
        write_whole(place / _FILE, text.encode(), durable=False)


def _given(value: Any) -> list[_Given]:
    """Earlier versions wrote nothing of it."""
    with contextlib.suppress(TypeError, ValueError):
        return [
            _Given(str(key), (int(size), int(mtime_ns)), (float(low), float(high)))
            for key, size, mtime_ns, low, high in value
        ]
    return []
