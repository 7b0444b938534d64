"""Who of a live shot comes first: the order of handing on, whoever is quicker."""

from __future__ import annotations

import errno
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import make_picture
from rooms import files, settings
from rooms import folder as make_folder
from waiting import until

from watcher.course import Course, Troubles
from watcher.depth import Plan
from watcher.finisher import Finisher
from watcher.frame import Frame, Identity, Outcome, Raw, Source
from watcher.handover import Handover
from watcher.inbox import identity_of
from watcher.journal import Journal
from watcher.loader import Loader
from watcher.shots import Decision, Shots
from watcher.turns import Line, Turns


def a_frame(number: int) -> Frame:
    return Frame(number, Source(Path("in"), f"a_{number}.png", f"a_{number}.png", Identity(1, 1)), 0, f"a_{number}")


def waiting_for(line: Line, frame: Frame, passed: list[int], first: list[bool] | None = None) -> threading.Thread:
    def wait() -> None:
        found = line.wait(frame)
        if first is not None:
            first.append(found)
        passed.append(frame.id)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def asleep(line: Line) -> int:
    return len(line._news._waiters)  # type: ignore[attr-defined]


def test_two_threads_leave_at_once() -> None:
    """The loader that hands a frame on and the finisher that has ended it may both say that it is gone."""
    line, frame = Line(), a_frame(1)
    line.join(frame, "a")

    class Interrupted(threading.Condition):
        """Another thread comes first, in the moment before this one has the lock."""

        met = False

        def __enter__(self) -> bool:
            if not self.met:
                self.met = True
                line.leave(frame)
            return super().__enter__()

    line._news = Interrupted()
    line.leave(frame)
    line.wait(frame)


def test_the_later_waits_for_the_earlier_of_its_shot() -> None:
    """It goes on as soon as the earlier has left, however that came."""
    turns, first, second, passed = Turns(), a_frame(7), a_frame(8), list[int]()
    turns.join(first, "a")
    turns.join(second, "a")
    thread = waiting_for(turns.loading, second, passed)
    until(lambda: asleep(turns.loading) == 1)
    turns.loading.wait(first)
    assert passed == []
    turns.leave(first)
    thread.join(10)
    assert passed == [8]
    turns.finishing.wait(second)
    turns.leave(second)
    turns.leave(second)


def test_shots_do_not_wait_for_each_other() -> None:
    """Nor does a frame that stands in no line."""
    turns = Turns()
    turns.join(a_frame(1), "a")
    turns.join(a_frame(2), "b")
    turns.loading.wait(a_frame(2))
    turns.loading.wait(a_frame(3))


def test_at_a_stop_nobody_waits() -> None:
    """A frame whose turn never comes does not keep the process from ending; it hears that its turn has not come."""
    line, passed, first = Line(), list[int](), list[bool]()
    line.join(a_frame(1), "a")
    line.join(a_frame(2), "a")
    line.join(a_frame(3), "a")
    threads = [waiting_for(line, a_frame(number), passed, first) for number in (2, 3)]
    until(lambda: asleep(line) == 2)
    line.end()
    until(lambda: len(passed) == 2)
    for thread in threads:
        thread.join(10)
    assert first == [False, False]
    assert line.wait(a_frame(1))


def test_nobody_moves_up_at_a_stop() -> None:
    """Whoever goes without having had its turn keeps its place: those behind it do not come before it."""
    line = Line()
    for number in range(1, 5):
        line.join(a_frame(number), "a")
    line.end()
    assert not line.wait(a_frame(2))  # the first may still be decided about
    line.leave(a_frame(2))
    line.leave(a_frame(1))
    assert not line.wait(a_frame(3))
    line.join(a_frame(8), "b")
    line.join(a_frame(9), "b")
    line.stay(a_frame(8))
    line.leave(a_frame(8))
    assert not line.wait(a_frame(9))


class Stage:
    """Two finishers and the frames of one live shot; what is decided about is noted, and how each frame ended."""

    def __init__(self, place: Path, frames: int) -> None:
        self.decided, self.ended = list[str](), dict[str, Outcome]()
        self.folder = make_folder(place, folder__output__range="shot-live")
        journal = Journal(place / "journal.db")
        journal.create()
        stage = self

        class Noting(Shots):
            def decide(self, raw: Raw, mode: str, outbox: Path) -> Decision:
                stage.before(raw.frame)
                stage.decided.append(raw.frame.source.name)
                return super().decide(raw, mode, outbox)

        shots = Noting(place / "state", "net", 10**9)
        self.course = Course((self.folder,), journal.path, self._gone, Troubles(), lambda: None, shots)
        self.turns = self.course.turns
        self.raws = []
        for number in range(1, frames + 1):
            path = make_picture(place / "in" / "take" / f"a_{number}.png")
            source = Source(place / "in", f"take/{path.name}", f"take/{path.name}", identity_of(path.stat()))
            frame = self.folder.attempt(journal, source, alone=False, patient=True)
            self.course.take_turn(frame)
            self.raws.append(Raw(frame, np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8), 8, 8, {}))
        journal.close()
        self.finisher, self.queue = Finisher(self.course, dict), Handover[Raw](2)

    def before(self, frame: Frame) -> None:
        """Just before it is decided about."""

    def _gone(self, frame: Frame, outcome: Outcome) -> None:
        self.turns.leave(frame)
        self.ended[frame.source.name] = outcome


def test_a_finisher_decides_in_turn(tmp_path: Path) -> None:
    """Whichever of two finishers is first to have a frame in hand, the earlier frame's range is found first."""
    stage = Stage(tmp_path, 2)
    stage.finisher.start(stage.queue)
    stage.queue.give(stage.raws[1])
    until(lambda: asleep(stage.turns.finishing) == 1)
    stage.queue.give(stage.raws[0])
    until(lambda: len(stage.ended) == 2)
    stage.queue.close()
    assert stage.finisher.join(10)
    assert set(stage.ended.values()) == {Outcome.DONE}
    assert stage.decided == ["a_1.png", "a_2.png"]
    assert files(tmp_path / "out") == ["take/a_1_depth.png", "take/a_2_depth.png"]


@pytest.mark.parametrize("first", ["the one with the trouble", "the line"])
def test_at_a_stop_nobody_is_decided_about_out_of_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The state disk refuses the first frame and is well again just as a stop comes: those behind are given back too.

    Whichever hears of the stop first, nobody waits for ever, and the next start decides about all in their order.
    """
    monkeypatch.setattr("watcher.finisher._RETRY_FIRST_S", 60.0)
    stage, refused = Stage(tmp_path, 3), list[str]()

    def refuse_once(frame: Frame) -> None:
        if not refused:
            refused.append(frame.source.name)
            raise OSError(errno.EIO, "no")

    monkeypatch.setattr(stage, "before", refuse_once)
    stage.finisher.start(stage.queue)
    stage.queue.give(stage.raws[0])
    until(lambda: refused)
    stage.queue.give(stage.raws[1])
    until(lambda: asleep(stage.turns.finishing) == 1)
    stage.queue.give(stage.raws[2])
    if first == "the line":
        stage.turns.end()
        until(lambda: len(stage.ended) == 2)
        stage.finisher.stopping.set()
    else:
        stage.finisher.stopping.set()
        until(lambda: "a_1.png" in stage.ended)
        stage.turns.end()
    stage.queue.close()
    assert stage.finisher.join(10)
    assert refused == ["a_1.png"]
    assert stage.decided == []
    assert stage.ended == dict.fromkeys(("a_1.png", "a_2.png", "a_3.png"), Outcome.GIVEN_BACK)
    assert not (tmp_path / "out").exists() or files(tmp_path / "out") == []
    journal = Journal(tmp_path / "journal.db")
    assert journal.in_state("attempt") == []
    journal.close()


def test_what_was_decided_before_a_stop_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop gives back only what is out of turn: one after the other, in order, is still decided about."""
    stage = Stage(tmp_path, 3)
    monkeypatch.setattr(stage, "before", lambda frame: stage.finisher.stopping.set())
    stage.turns.end()
    stage.finisher.start(stage.queue)
    for raw in stage.raws:
        stage.queue.give(raw)
        until(partial(stage.ended.get, raw.frame.source.name))
    stage.queue.close()
    assert stage.finisher.join(10)
    assert set(stage.ended.values()) == {Outcome.DONE}
    assert stage.decided == ["a_1.png", "a_2.png", "a_3.png"]


def test_at_a_stop_nobody_is_loaded_out_of_turn(tmp_path: Path) -> None:
    """The first frame is given back because a stop has come: the one behind it, loaded before, does not move up."""
    stage = Stage(tmp_path, 2)
    loader, work = Loader(stage.course, settings(tmp_path).limits), Handover[Frame](2)
    loader.start(work, lambda: Plan(16, 24))
    work.give(stage.raws[1].frame)
    until(lambda: asleep(stage.turns.loading) == 1)
    loader.stopping.set()
    work.give(stage.raws[0].frame)
    until(lambda: "a_1.png" in stage.ended)
    stage.turns.end()
    work.close()
    assert loader.join(10)
    assert len(loader.ready) == 0
    assert stage.ended == dict.fromkeys(("a_1.png", "a_2.png"), Outcome.GIVEN_BACK)
