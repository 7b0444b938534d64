"""Raw maps as files: everything that is needed to finish a frame later without running the network again."""

from __future__ import annotations

import errno
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from watcher.frame import Aside, Float32, Identity, Raw, Source
from watcher.volume import NOTHING_THERE

ENDING = ".npz"
_DAMAGED = (None, errno.EINVAL, *NOTHING_THERE)  # by NumPy; a place before the file's beginning, named in it; gone


@dataclass(frozen=True, slots=True)
class Kept:
    """``depth`` (h, w) float32 relative inverse depth, larger is nearer, and what travels beside it."""

    depth: Float32
    height_px: int
    width_px: int
    facts: dict[str, Any]
    aside: Aside | None


@dataclass(frozen=True, slots=True)
class Note:
    """What one kept map is about, without its pixels. ``quantiles`` (257,) float32."""

    rel: str
    key: str
    identity: Identity
    quantiles: Float32


def packed(raw: Raw, quantiles: Float32, maker: str) -> bytes:
    """The bytes of a kept map: a NumPy archive without pickles."""
    source = raw.frame.source
    note = {
        "maker": maker,
        "rel": source.rel,
        "key": source.key,
        "content": source.identity.content,
        "size_px": [raw.height_px, raw.width_px],
        "facts": raw.facts,
    }
    parts: dict[str, Any] = {
        "note": np.frombuffer(json.dumps(note).encode(), np.uint8),
        "quantiles": quantiles,
        "depth": raw.depth,
    }
    if raw.aside is not None:
        parts |= {k: v for k, v in (("picture", raw.aside.picture), ("alpha", raw.aside.alpha)) if v is not None}
    out = io.BytesIO()
    np.savez(out, **parts)
    return out.getvalue()


def note_of(path: Path, maker: str) -> Note | None:
    """What a kept map is about; ``None`` where it is gone, damaged, or made by another network.

    Raises ``OSError`` where its disk does not let it be read now: it may be as good as it was.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            note = _note(archive)
            if note["maker"] != maker:
                return None
            size, mtime_ns = note["content"]
            return Note(note["rel"], note["key"], Identity(size, mtime_ns), archive["quantiles"].astype(np.float32))
    except Exception as error:  # a damaged archive fails in many ways, and none is worth more than reading again
        if isinstance(error, OSError) and error.errno not in _DAMAGED:
            raise
        return None


def unpacked(path: Path, source: Source, maker: str) -> Kept | None:
    """The kept map of ``source``; ``None`` as above, or where its content is another, or cannot be read now.

    Then the picture is read again, which gives the same map.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            note = _note(archive)
            if note["maker"] != maker or note["key"] != source.key or tuple(note["content"]) != source.identity.content:
                return None
            height_px, width_px = note["size_px"]
            sides = {name: archive[name] for name in ("picture", "alpha") if name in archive}
            depth = archive["depth"].astype(np.float32, copy=False)
            return Kept(depth, height_px, width_px, note["facts"], Aside(**sides) if sides else None)
    except Exception:  # a damaged archive fails in many ways, and none of them is worth more than reading again
        return None


def _note(archive: Any) -> dict[str, Any]:
    note = json.loads(bytes(archive["note"]))
    if not isinstance(note, dict):
        raise ValueError("not a note of ours")
    return note
