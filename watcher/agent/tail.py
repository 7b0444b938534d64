"""The end of a log file, and what is added to it, also across the file's turning over."""

from __future__ import annotations

import os
from pathlib import Path

_READ_BYTES = 1 << 16


def last_lines(file: Path, count: int) -> list[str]:
    """At most ``count`` lines, without reading more of the file than needed; none where it cannot be opened."""
    try:
        with file.open("rb") as source:
            at = source.seek(0, os.SEEK_END)
            data = b""
            while at > 0 and data.count(b"\n") <= count:
                step = min(_READ_BYTES, at)
                at = source.seek(at - step)
                data = source.read(step) + data
                source.seek(at)
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-count:]


class Tail:
    """What comes after the end that the file had when this was made."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = b""
        try:
            state = file.stat()
            self._node, self._at = state.st_ino, state.st_size
        except OSError:
            self._node, self._at = 0, 0

    def fresh(self) -> list[str]:
        """Whole lines written since the last call. A new or shortened file is read from its beginning."""
        try:
            with self._file.open("rb") as source:
                state = os.fstat(source.fileno())
                if state.st_ino != self._node or state.st_size < self._at:
                    self._node, self._at, self._begun = state.st_ino, 0, b""
                source.seek(self._at)
                data = source.read()
        except OSError:
            return []
        self._at += len(data)
        whole, cut, rest = (self._begun + data).rpartition(b"\n")
        self._begun = rest
        return whole.decode("utf-8", "replace").split("\n") if cut else []
