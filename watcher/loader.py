"""Loader: a small pool of threads that turn files into tensors.

Touches: sources (reading), each thread its own journal. Waits for the engine's plan before the first frame; gives to
the ready queue, and waits there when the network is behind, or when it is not yet the frame's turn (``turns``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from watcher import depth, imagefile, rendering
from watcher.config import Limits, Output
from watcher.course import Course
from watcher.crew import Crew
from watcher.errors import Blame, SourceChanged, SourceGone, Truncated, Unavailable, blame_of, explain
from watcher.folder import reason_of
from watcher.frame import Aside, Call, Float32, Frame, Outcome, Ready
from watcher.handover import Handover
from watcher.journal import Journal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """``tensor`` (1, 3, h, w) float32; the upright size of the source; what is worth keeping about the picture."""

    tensor: Float32
    height_px: int
    width_px: int
    facts: dict[str, Any]
    aside: Aside | None = None


def load(data: bytes, plan: depth.Plan, max_pixels: int, output: Output | None = None) -> Loaded:
    """Decode one picture and fill the network's input with it; keep what ``output`` will need of it.

    Raises ``FrameError``.
    """
    whole = output is not None and rendering.refines(output)
    least_px = 0 if whole else depth.min_side_px(plan)
    picture = imagefile.decode(data, max_pixels=max_pixels, min_side_px=least_px)
    facts: dict[str, Any] = {"source_format": picture.format, "source_bits": picture.bits}
    if picture.notes:
        facts["source_notes"] = "; ".join(picture.notes)
    return Loaded(
        depth.prepare(picture.pixels, plan),
        picture.height_px,
        picture.width_px,
        facts,
        rendering.aside(picture, output) if output is not None else None,
    )


class Loader(Crew[Frame]):
    def __init__(self, course: Course, limits: Limits, *, threads: int = 2) -> None:
        super().__init__("loader", course, threads)
        self.ready: Handover[Ready] = Handover(3)
        self._limits = limits
        self._plan: Callable[[], depth.Plan | None] = lambda: None

    def start(self, work: Handover[Frame], plan: Callable[[], depth.Plan | None]) -> None:
        """``plan`` waits until the engine knows its network; ``None`` when it never will."""
        self._plan = plan
        self._take_from(work)

    def _frame_of(self, item: Frame) -> Frame:
        return item

    def _do(self, journal: Journal, number: int, item: Frame) -> None:
        if item.call is not None and not item.call.wanted():
            return
        plan = None if self.stopping.is_set() else self._plan()
        if plan is None:
            self._course.turns.loading.stay(item)
            self._give_back(journal, item)
            return
        with self._working(number):
            ready = self._load(journal, number, item, plan)
        if ready is not None:
            if not self._course.turns.loading.wait(item):
                self._give_back(journal, item)
                return
            self.ready.give(ready)
            self._course.turns.loading.leave(item)

    def _give_back(self, journal: Journal, frame: Frame) -> None:
        if frame.call is not None:
            frame.call.answer(Unavailable("the daemon is stopping", "Try again when it runs."))
            return
        journal.give_back(frame)
        self._course.ended(frame, Outcome.GIVEN_BACK)

    def _load_call(self, number: int, frame: Frame, call: Call, plan: depth.Plan) -> Ready | None:
        """A picture that was sent: whatever is wrong with it is the answer, and nothing is written down."""
        try:
            with self._timed(number, frame):
                loaded = load(call.data, plan, self._limits.max_pixels)
        except Exception as error:
            if blame_of(error) not in (Blame.FRAME, Blame.VOLUME):
                raise
            call.answer(error)
            return None
        facts = {"source": frame.source.rel, "source_bytes": len(call.data), **loaded.facts}
        return Ready(frame, loaded.tensor, loaded.height_px, loaded.width_px, facts)

    def _load(self, journal: Journal, number: int, frame: Frame, plan: depth.Plan) -> Ready | None:
        if frame.call is not None:
            return self._load_call(number, frame, frame.call, plan)
        folder = self._course.folder_of(frame)
        kept = self._kept(frame)
        if kept is not None and not rendering.refines(folder.settings.output):
            return kept
        try:
            taken = folder.inbox.read(frame.source, self._limits.max_file_mb * 1_000_000)
            with self._timed(number, frame):
                loaded = load(taken.data, plan, self._limits.max_pixels, folder.settings.output)
        except SourceGone:
            journal.forget(frame.source.inbox, frame.source.key, "attempt")
            self._course.ended(frame, Outcome.GONE)
        except SourceChanged as error:
            log.info("%s: %s", frame, error.what)
            journal.give_back(frame)
            self._course.ended(frame, Outcome.CHANGED)
        except Truncated as error:
            self._truncated(journal, frame, error)
        except Exception as error:
            self._failed(journal, frame, error)
        else:
            self._course.troubles.tell(str(frame.source.path), None)
            facts = {
                "source": frame.source.rel,
                "source_bytes": len(taken.data),
                "source_sha256": taken.sha256,
                **loaded.facts,
            }
            if kept is not None:  # the network is not needed again, but the picture's edges are
                return replace(kept, aside=loaded.aside)
            return Ready(frame, loaded.tensor, loaded.height_px, loaded.width_px, facts, loaded.aside)
        return None

    def _kept(self, frame: Frame) -> Ready | None:
        """The frame of a shot whose raw map was made before: nothing has to be read again."""
        wanted = self._course.folder_of(frame).settings.output.range
        found = self._course.shots.kept(frame.source) if self._course.shots and wanted == "shot" else None
        if found is None:
            return None
        empty = np.empty((1, 3, 0, 0), np.float32)
        return Ready(frame, empty, found.height_px, found.width_px, found.facts, found.aside, found.depth)

    def _truncated(self, journal: Journal, frame: Frame, error: Truncated) -> None:
        if not frame.patient:
            self._failed(journal, frame, error)
            return
        log.info("%s: %s. It waits for the rest", frame, error.what)
        journal.hold(frame, reason_of(error, frame.attempt))
        self._course.ended(frame, Outcome.HELD)

    def _failed(self, journal: Journal, frame: Frame, error: Exception) -> None:
        if blame_of(error) is Blame.VOLUME:
            text = "{}. {}".format(*explain(error)) if isinstance(error, OSError) else str(error)
            self._course.troubles.tell(str(frame.source.path), f"cannot be read now: {text}")
            self._give_back(journal, frame)
            return
        if blame_of(error) is not Blame.FRAME:
            raise error
        self._course.folder_of(frame).fail(journal, frame, error)
        self._course.ended(frame, Outcome.FAILED)
