"""Which frames belong together, and what their shot is called. Pure."""

from __future__ import annotations

import os
import re
import zlib
from urllib.parse import quote

_NUMBERED = re.compile(r"^(?P<lead>.*?)(?P<number>\d+)$", re.DOTALL)
_SAFE_CHARS = 120


def shot_of(rel: str) -> str | None:
    """The shot of the file ``rel`` (its path in the inbox); ``None`` where it stands alone.

    ``a/take_0001.exr`` → ``a/take_#.exr``: all files of one folder whose names differ in the last number only.
    ``a/tree.jpg`` → ``a/``: what has no number belongs to its sub-folder. Without either it belongs to nothing.
    """
    folder, _, name = rel.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    if not stem:
        stem, dot, extension = name, "", ""
    lead = f"{folder}/" if folder else ""
    found = _NUMBERED.match(stem)
    if found is not None:
        return f"{lead}{found['lead']}#{dot}{extension.lower()}"
    return lead or None


def folder_of(shot: str) -> str:
    """The sub-folder of a shot, "" for the inbox itself."""
    return shot.rpartition("/")[0]


def record_name(shot: str) -> str:
    """Where, in the outbox, the shot's range is written down."""
    return f"{shot}shot.json" if shot.endswith("/") else f"{shot}.shot.json"


def file_name(text: str) -> str:
    """A name for a file of ours that says what it belongs to, is never too long and never another's."""
    raw = os.fsencode(text)
    return f"{quote(raw, safe='')[:_SAFE_CHARS]}~{len(raw):x}-{zlib.crc32(raw):08x}"
