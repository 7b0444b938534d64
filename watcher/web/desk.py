"""Desk: the daemon's side of every question. Pictures go where frames go; nobody here touches the session.

Touches: the work queue's second lane, a journal of its own for each question, quarantine (retry), the two files of the
settings. Called from the front's threads, each of which waits here for its answer.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from watcher import config, durable, imagefile, memory, status
from watcher.clock import now_s, stamp
from watcher.errors import explain
from watcher.frame import Call, Frame, Identity, Reply, Source
from watcher.handover import Handover
from watcher.web.album import Album
from watcher.web.door import Answer, Gone, Question, Refused, refusal_of

BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LOOK_S = 0.2
_SEED_FORMATS = {".jpg": "jpg", ".png": "png16"}


class Entrance(Protocol):
    """What the desk needs of intake."""

    @property
    def work(self) -> Handover[Frame]: ...
    @property
    def paused(self) -> bool: ...
    @property
    def suspicious(self) -> bool: ...
    def pause(self, on: bool) -> None: ...


@dataclass(slots=True)
class Tally:
    """What became of the pictures that were sent, since the start."""

    outcomes: Counter[str] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0] * len(BUCKETS_S))
    seconds: float = 0.0
    answered: int = 0

    def note(self, outcome: str, took_s: float) -> None:
        self.outcomes[outcome] += 1
        if outcome == "done":
            self.answered += 1
            self.seconds += took_s
            for index, upper_s in enumerate(BUCKETS_S):
                self.buckets[index] += took_s <= upper_s


class Slot:
    """Where one answer arrives."""

    def __init__(self) -> None:
        self.wanted = True
        self.answer: Reply | Exception | None = None
        self.arrived = threading.Event()

    def put(self, answer: Reply | Exception) -> None:
        self.answer = answer
        self.arrived.set()


class Desk:
    def __init__(self, settings: config.Settings, entrance: Entrance, about: Callable[[], Mapping[str, Any]]) -> None:
        """``about``: the licence of the model, and the pulse of the last two minutes, as they are now."""
        self.closed = threading.Event()
        self._settings = settings
        self._state_dir = config.state_dir(settings)
        self._entrance = entrance
        self._about = about
        self._tally = Tally()
        self._lock = threading.Lock()
        self._album = Album(settings, self._state_dir)
        self._answers: dict[str, Callable[[Question, Callable[[], bool]], Answer]] = {
            "predict": self._predict,
            "seed": self._seed,
            "status": self._status,
            "page": self._page,
            "metrics": self._metrics,
            "retry": self._retry,
            "pause": self._pause,
            "thumbnail": self._thumbnail,
        }

    def ask(self, question: Question, wanted: Callable[[], bool]) -> Answer:
        """Raises ``Refused``; ``Gone`` once nobody waits for the answer."""
        answer = self._answers.get(question.what)
        if answer is None:
            raise Refused(400, "bad-question", f"there is no question {question.what!r}")
        if self.closed.is_set():
            raise Refused(503, "stopping", "the daemon is stopping", "Send it again when it runs.", after_s=5)
        return answer(question, wanted)

    # -- pictures -------------------------------------------------------------------------------------------------

    def _predict(self, question: Question, wanted: Callable[[], bool]) -> Answer:
        began_s = now_s()
        try:
            reply = self._through_the_queue(question, wanted)
        except Gone:
            self._note("gone", began_s)
            raise
        except Exception as error:
            refused = refusal_of(error)
            self._note({429: "busy", 503: "not now"}.get(refused.status, "refused"), began_s)
            raise refused from error
        took_s = self._note("done", began_s)
        return Answer({"made": dict(reply.facts), "took_ms": round(took_s * 1000, 2)}, reply.data)

    def _note(self, outcome: str, began_s: float) -> float:
        took_s = now_s() - began_s
        with self._lock:
            self._tally.note(outcome, took_s)
        return took_s

    def _through_the_queue(self, question: Question, wanted: Callable[[], bool]) -> Reply:
        api = self._settings.api
        if len(question.data) > api.max_mb * 1_000_000:
            raise Refused(413, "too-large", f"the picture has more than {api.max_mb} MB", "Raise api.max_mb.")
        if imagefile.sniff(question.data[: imagefile.HEAD_BYTES]) is None:
            raise Refused(415, "not-a-picture", "this is not a picture", "Send the bytes of a JPEG, PNG, TIFF, HEIC …")
        if self._entrance.suspicious:
            why = "after a crash the frames that were in work run alone"
            raise Refused(503, "sorting-out", why, "Send it again in a moment.", after_s=5)
        slot = Slot()
        call = Call(question.data, self._wishes(question.facts), slot.put, lambda: slot.wanted)
        name = str(question.facts.get("name") or "picture")
        source = Source(Path(), name, name, Identity(len(question.data), 0))
        frame = Frame(0, source, -1, "", call=call)
        if not self._entrance.work.offer(frame):
            raise Refused(429, "busy", "too many pictures are waiting", "Send it again.", after_s=self._again_s())
        try:
            return self._wait(slot, wanted)
        finally:
            slot.wanted = False
            self._entrance.work.withdraw(frame)

    def _wait(self, slot: Slot, wanted: Callable[[], bool]) -> Reply:
        limit_s = self._settings.api.timeout_s
        until_s = now_s() + limit_s
        while not slot.arrived.wait(max(0.0, min(_LOOK_S, until_s - now_s()))):
            if not wanted():
                raise Gone
            if self.closed.is_set():
                raise Refused(503, "stopping", "the daemon is stopping", "Send it again when it runs.", after_s=5)
            if now_s() >= until_s:
                what = f"it was not done within {limit_s:g} s"
                raise Refused(503, "timeout", what, "Send it again, or raise api.timeout_s.", after_s=self._again_s())
        if isinstance(slot.answer, Exception):
            raise slot.answer
        assert slot.answer is not None
        return slot.answer

    def _again_s(self) -> int:
        """When a place should be free: half of what waits, at the pace of the calls so far."""
        each_s = self._tally.seconds / self._tally.answered if self._tally.answered else 1.0
        return max(1, min(60, math.ceil(each_s / 2)))

    def _wishes(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for, on top of what the first folder writes: the same picture gives the same map.

        A picture that is sent belongs to no shot, so the ranges of shots become its frame's, and its facts say why.
        """
        own = self._settings.folders[0].output
        wishes: dict[str, Any] = {"format": "png16", "near": own.near, "size": own.size, "range": own.range}
        wishes.update({key: facts[key] for key in wishes if facts.get(key) is not None})
        if isinstance(wishes["range"], list):
            wishes["range"] = tuple(wishes["range"])
        return wishes

    def _seed(self, _question: Question, wanted: Callable[[], bool]) -> Answer:
        """The two files of the settings, and no others: frame_file in, map_file out."""
        api = self._settings.api
        if api.frame_file is None or api.map_file is None:
            what = "the request has no picture in it"
            raise Refused(400, "empty", what, "Send one; or set api.frame_file and api.map_file for empty requests.")
        most = api.max_mb * 1_000_000
        try:
            with api.frame_file.open("rb") as file:
                data = file.read(most + 1)
        except FileNotFoundError:
            raise Refused(404, "no-frame", "api.frame_file is not there", "Write it before the request.") from None
        except OSError as error:
            raise Refused(503, "not-now", *explain(error), after_s=5) from None
        fmt = _SEED_FORMATS[api.map_file.suffix.lower()]
        answer = self._predict(Question("predict", {"name": api.frame_file.name, "format": fmt}, data), wanted)
        try:
            durable.write_whole(api.map_file, answer.data)
        except OSError as error:
            raise Refused(503, "not-now", *explain(error), after_s=5) from None
        return Answer(answer.facts)

    # -- looking --------------------------------------------------------------------------------------------------

    def _status(self, _question: Question, _wanted: Callable[[], bool]) -> Answer:
        return Answer(status.read(self._state_dir).as_json())

    def _page(self, _question: Question, _wanted: Callable[[], bool]) -> Answer:
        facts = {
            "status": status.read(self._state_dir).as_json(),
            "paused": self._entrance.paused,
            "calls": self._calls(),
            **self._about(),
            **self._album.shown(),
        }
        return Answer(facts)

    def _calls(self) -> dict[str, Any]:
        with self._lock:
            return {"waiting": self._entrance.work.waiting_aside, **dict(self._tally.outcomes)}

    def _metrics(self, _question: Question, _wanted: Callable[[], bool]) -> Answer:
        with self._lock:
            calls = {
                "outcomes": dict(self._tally.outcomes),
                "buckets": [list(pair) for pair in zip(BUCKETS_S, self._tally.buckets, strict=True)],
                "seconds": self._tally.seconds,
                "answered": self._tally.answered,
            }
        facts = {
            "status": status.read(self._state_dir).as_json(),
            "calls": calls,
            "waiting": self._entrance.work.waiting_aside,
            "paused": self._entrance.paused,
            "resident_bytes": memory.resident_bytes(),
        }
        return Answer({**facts, **self._about()})

    def _thumbnail(self, question: Question, _wanted: Callable[[], bool]) -> Answer:
        return Answer(data=self._album.thumbnail(int(question.facts["id"]), str(question.facts["side"])))

    # -- changing -------------------------------------------------------------------------------------------------

    def _retry(self, question: Question, _wanted: Callable[[], bool]) -> Answer:
        return Answer({"back": self._album.bring_back(str(question.facts["name"]))})

    def _pause(self, question: Question, _wanted: Callable[[], bool]) -> Answer:
        self._entrance.pause(bool(question.facts["on"]))
        return Answer({"paused": self._entrance.paused, "when": stamp()})
