"""Finisher: a small pool of threads that turn raw depth into published maps and put the sources away.

Touches: the outboxes, each thread its own journal. The order is publish, journal, dispose; a full or absent volume
makes it wait with the map in hand, which holds back everything above it and loses nothing.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from watcher.clock import now_s
from watcher.config import Output as OutputSettings
from watcher.course import Course, put_away
from watcher.crew import Crew
from watcher.effort import Pulse
from watcher.errors import Blame, blame_of, explain, in_words, may_be_one_place
from watcher.folder import Folder
from watcher.frame import Call, Frame, Outcome, Raw, Reply
from watcher.handover import Handover
from watcher.journal import Journal
from watcher.outbox import Output
from watcher.rendering import Span, render, span_of
from watcher.scratch import Scratch, used
from watcher.shots import Decision, Shots

log = logging.getLogger(__name__)

_SHOTS_PLACE = "shots"
_RETRY_FIRST_S = 1.0
_RETRY_MOST_S = 30.0


class Finisher(Crew[Raw]):
    def __init__(self, course: Course, about: Callable[[], Mapping[str, Any]], *, threads: int = 2) -> None:
        super().__init__("finisher", course, threads)
        self.done_at_s: deque[float] = deque(maxlen=240)
        self.pulse = Pulse()
        self._about = about
        self._held_up: set[tuple[str, int]] = set()  # (outbox that takes nothing now, frame in hand)
        self._scratch = [Scratch() for _ in range(threads)]
        self._order = threading.Lock()  # one frame at a time decides about the range of a shot

    def start(self, raw: Handover[Raw]) -> None:
        self._take_from(raw)

    def _frame_of(self, item: Raw) -> Frame:
        return item.frame

    def _do(self, journal: Journal, number: int, item: Raw) -> None:
        with used(self._scratch[number]), self._working(number):
            if item.frame.call is not None:
                self._finish_call(number, item, item.frame.call)
            else:
                self._finish(journal, number, item)

    def rest(self) -> None:
        """Nothing to do for now: the memory that frames are made in goes back."""
        for scratch in self._scratch:
            scratch.drop()

    def _finish_call(self, number: int, raw: Raw, call: Call) -> None:
        """The map of a picture that was sent goes back to whoever sent it; no file is written."""
        try:
            with self._timed(number, raw.frame):
                made = render(raw, OutputSettings(**call.wishes, preview="none", sidecar=True), self._about())
            call.answer(Reply(made[0].data, json.loads(made[-1].data)))
            self.pulse.note(now_s())
        except Exception as error:
            if blame_of(error) is not Blame.FRAME:
                raise
            call.answer(error)

    def _finish(self, journal: Journal, number: int, raw: Raw) -> None:
        folder, frame = self._course.folder_of(raw.frame), raw.frame
        span = self._span(number, journal, folder, raw)
        if span is None:
            return
        try:
            with self._timed(number, frame):
                outputs = render(raw, folder.settings.output, self._about(), span)
        except Exception as error:
            if blame_of(error) is not Blame.FRAME:
                raise
            folder.fail(journal, frame, error)
            self._course.ended(frame, Outcome.FAILED)
            return
        paths = self._publish(number, journal, folder, raw, outputs)
        if paths is None:
            self._give_back(journal, frame)
            return
        journal.done(frame, [str(path) for path in paths])
        self._tell_shots(folder, frame)
        self.done_at_s.append(now_s())
        self.pulse.note(now_s())
        self._dispose(folder, frame)
        log.info("%s: done: %s", frame, paths[0])
        self._course.ended(frame, Outcome.DONE)

    def _span(self, number: int, journal: Journal, folder: Folder, raw: Raw) -> Span | None:
        """The frame's range; ``None`` where the frame was held or given back.

        Held until its shot has settled; given back where a stop came before its turn, or only its shot is in trouble.
        """
        frame, mode = raw.frame, folder.settings.output.range
        if self._course.shots is None or mode not in ("shot", "shot-live"):
            return span_of(raw, folder.settings.output)
        with self._resting(number):
            its_turn = self._course.turns.finishing.wait(frame)
        if not its_turn:
            self._give_back(journal, frame)
            return None
        made = self._decide(number, self._course.shots, folder, raw, mode)
        if made is None:
            self._give_back(journal, frame)
            return None
        self._course.turns.finishing.leave(frame)
        if not made.kept:
            return Span(made.ends, made.mode, made.note)
        journal.hold(frame, {"code": "shot", "what": "its raw map is kept until its shot has settled"})
        self._course.ended(frame, Outcome.HELD)
        return None

    def _decide(self, number: int, shots: Shots, folder: Folder, raw: Raw, mode: str) -> Decision | None:
        """As soon as the disks let us; ``None``: a stop came first, or only this shot's file in the outbox is wrong."""
        pause_s, place = _RETRY_FIRST_S, folder.outbox.folder
        while True:
            try:
                with self._order:
                    made = shots.decide(raw, mode, place)
                if mode == "shot" and not made.kept:
                    folder.outbox.prepare()  # it is there now, so no locked range in it was overlooked
            except OSError as error:
                trouble = "{}. {}".format(*explain(error))
                if mode == "shot" and _lies_in(place, error) and may_be_one_place(error) and folder.outbox.usable():
                    self._course.troubles.tell(str(raw.frame.source.path), f"its range cannot be found: {trouble}")
                    return None
                self._course.troubles.tell(_SHOTS_PLACE, f"ranges can be neither found nor kept: {trouble}")
            else:
                self._course.troubles.tell(_SHOTS_PLACE, None)
                return made
            if self._stopped(number, pause_s):
                self._course.turns.finishing.stay(raw.frame)
                return None
            pause_s = min(pause_s * 2, _RETRY_MOST_S)

    def _tell_shots(self, folder: Folder, frame: Frame) -> None:
        """The frame's map is durable, and the journal knows."""
        shots, mode = self._course.shots, folder.settings.output.range
        if shots is not None and mode == "shot":
            shots.finished(frame.source, folder.outbox.folder)
        elif shots is not None and mode == "shot-live":
            shots.finished_live(frame.source)

    def _give_back(self, journal: Journal, frame: Frame) -> None:
        journal.give_back(frame)
        self._course.ended(frame, Outcome.GIVEN_BACK)

    def _publish(
        self, number: int, journal: Journal, folder: Folder, raw: Raw, outputs: tuple[Output, ...]
    ) -> tuple[Path, ...] | None:
        """Publish, as soon as the volume lets us; ``None``: a stop came first, or only this map's place is wrong.

        The trouble of an outbox is told once, and is over when none of the frames in hand is held up by it any more.
        """
        pause_s, frame = _RETRY_FIRST_S, raw.frame
        place = str(folder.outbox.folder)
        while True:
            try:
                paths = folder.publish(journal, frame, outputs, str(raw.facts.get("source_sha256", "")))
            except OSError as error:
                if may_be_one_place(error) and folder.outbox.usable():
                    trouble = "its map cannot be written: {}. {}".format(*explain(error))
                    self._course.troubles.tell(str(frame.source.path), trouble)
                    self._held_up.discard((place, frame.id))
                    return None
                self._held_up.add((place, frame.id))
                self._course.troubles.tell(place, f"maps cannot be written: {in_words(error)}")
            else:
                self._held_up.discard((place, frame.id))
                self._course.troubles.tell(str(frame.source.path), None)
                if not any(other == place for other, _ in tuple(self._held_up)):
                    self._course.troubles.tell(place, None)
                return paths
            if self._stopped(number, pause_s):
                return None
            pause_s = min(pause_s * 2, _RETRY_MOST_S)

    def _stopped(self, number: int, pause_s: float) -> bool:
        """Whether a stop came while the volume was left alone for that long."""
        with self._resting(number):
            return self.stopping.wait(pause_s)

    def _dispose(self, folder: Folder, frame: Frame) -> None:
        if not put_away(folder, frame.source, self._course.troubles):
            log.info("%s: changed while it was in work. It is done again", frame)


def _lies_in(place: Path, error: OSError) -> bool:
    return error.filename is not None and Path(os.fsdecode(error.filename)).is_relative_to(place)
