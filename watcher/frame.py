"""Values that travel: a source on disk, a frame on its way, and what the seams hand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


class Wholeness(StrEnum):
    """What the bytes of a file say about themselves, before anything is decoded."""

    WHOLE = "whole"  # the format's own end is there
    PARTIAL = "partial"  # the format says that bytes are missing
    UNKNOWN = "unknown"  # the format cannot tell


@dataclass(frozen=True, slots=True)
class Identity:
    """Which content a path holds. Equal identities are the same content."""

    size: int
    mtime_ns: int
    device: int = 0
    inode: int = 0

    @property
    def content(self) -> tuple[int, int]:
        """(size, mtime_ns): what survives a restart, a rename and a remounted volume."""
        return self.size, self.mtime_ns


@dataclass(frozen=True, slots=True)
class Source:
    """One file in an inbox. ``rel`` opens it (as the directory gave it); ``key`` compares it (NFC, folded)."""

    inbox: Path
    rel: str
    key: str
    identity: Identity

    @property
    def path(self) -> Path:
        return self.inbox / self.rel

    @property
    def name(self) -> str:
        return self.rel.rsplit("/", 1)[-1]


def readable(text: str) -> str:
    """How a name is told in a map's metadata, which must be text; the names of files need not be."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call: the file's bytes, and what was written down about its making."""

    data: bytes
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A picture that somebody sent instead of dropping it: it has no file, and its map goes back to whoever sent it.

    ``wishes`` are keys of the settings' ``output``, checked. ``answer`` is called once, from any thread, and must not
    wait; ``wanted`` is False once nobody waits for the answer any more.
    """

    data: bytes
    wishes: Mapping[str, Any]
    answer: Callable[[Reply | Exception], None]
    wanted: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Frame:
    """A source that has settled and whose attempt is in the journal; or, with a ``call``, a picture that was sent."""

    id: int
    source: Source
    folder: int  # index into settings.folders
    base: str  # the map's path in the outbox without its extension
    attempt: int = 1
    alone: bool = False  # a suspect: nothing else may be in flight beside it
    patient: bool = True  # False: it has waited long enough; truncated now means failed
    call: Call | None = None  # then id is 0, the source is only a name, and no journal knows it

    def __str__(self) -> str:
        return f"#{self.id} {self.source.rel}"


class Outcome(StrEnum):
    """How a frame left the path."""

    DONE = "done"
    FAILED = "failed"
    HELD = "held"  # truncated, waiting for the rest
    GIVEN_BACK = "given back"  # nobody's fault, or a volume's: stays in the inbox, tried again
    CHANGED = "changed"  # the source changed under our hands
    GONE = "gone"  # the source was taken away


@dataclass(frozen=True, slots=True, eq=False)
class Aside:
    """What the outputs need of the picture beside its depth, small enough to travel; ``None``: not asked for.

    ``picture`` (h, w, 3) uint8 RGB. ``alpha`` (h, w) uint8, 0 = transparent; may be smaller than the source. ``guide``
    (h, w) uint8, the lightness that edges are refined along; never kept on a disk.
    """

    picture: NDArray[np.uint8] | None = None
    alpha: NDArray[np.uint8] | None = None
    guide: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """Loader to engine. ``tensor`` (1, 3, h, w) float32; ``height_px``/``width_px`` of the upright source.

    ``depth`` (h, w) float32: the network has seen this picture before, and only has to hand this on.
    """

    frame: Frame
    tensor: Float32
    height_px: int
    width_px: int
    facts: dict[str, Any] = field(default_factory=dict)  # format, bits, sha256 … for the metadata
    aside: Aside | None = None
    depth: Float32 | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """Engine to finisher. ``depth`` (h, w) float32, relative inverse depth, larger is nearer."""

    frame: Frame
    depth: Float32
    height_px: int
    width_px: int
    facts: dict[str, Any] = field(default_factory=dict)
    aside: Aside | None = None
