"""Who of a live shot comes first: the order of handing on, whoever is quicker."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from conftest import make_picture
from rooms import files
from rooms import folder as make_folder
from waiting import until

from watcher.course import Course, Troubles
from watcher.finisher import Finisher
from watcher.frame import Frame, Identity, Outcome, Raw, Source
from watcher.handover import Handover
from watcher.inbox import identity_of
from watcher.journal import Journal
from watcher.shots import Decision, Shots
from watcher.turns import Line, Turns


def a_frame(number: int) -> Frame:
    return Frame(number, Source(Path("in"), f"a_{number}.png", f"a_{number}.png", Identity(1, 1)), 0, f"a_{number}")


def waiting_for(line: Line, frame: Frame, passed: list[int]) -> threading.Thread:
    def wait() -> None:
        line.wait(frame)
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
    """A frame whose turn never comes does not keep the process from ending."""
    line, passed = Line(), list[int]()
    line.join(a_frame(1), "a")
    line.join(a_frame(2), "a")
    line.join(a_frame(3), "a")
    threads = [waiting_for(line, a_frame(number), passed) for number in (2, 3)]
    until(lambda: asleep(line) == 2)
    line.end()
    until(lambda: len(passed) == 2)
    for thread in threads:
        thread.join(10)


def test_a_finisher_decides_in_turn(tmp_path: Path) -> None:
    """Whichever of two finishers is first to have a frame in hand, the earlier frame's range is found first."""
    folder = make_folder(tmp_path, folder__output__range="shot-live")
    journal, decided, ended = Journal(tmp_path / "journal.db"), list[str](), list[Frame]()
    journal.create()

    class Noting(Shots):
        def decide(self, raw: Raw, mode: str, outbox: Path) -> Decision:
            decided.append(raw.frame.source.name)
            return super().decide(raw, mode, outbox)

    def gone(frame: Frame, outcome: Outcome) -> None:
        assert outcome is Outcome.DONE
        ended.append(frame)

    shots = Noting(tmp_path / "state", "net", 10**9)
    course = Course((folder,), journal.path, gone, Troubles(), lambda: None, shots)
    raws = []
    for name in ("a_1.png", "a_2.png"):
        path = make_picture(tmp_path / "in" / "take" / name)
        source = Source(tmp_path / "in", f"take/{name}", f"take/{name}", identity_of(path.stat()))
        frame = folder.attempt(journal, source, alone=False, patient=True)
        course.take_turn(frame)
        raws.append(Raw(frame, np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8), 8, 8, {}))
    journal.close()
    finisher, queue = Finisher(course, dict), Handover[Raw](2)
    finisher.start(queue)
    queue.give(raws[1])
    until(lambda: asleep(course.turns.finishing) == 1)
    queue.give(raws[0])
    until(lambda: len(ended) == 2)
    queue.close()
    assert finisher.join(10)
    assert decided == ["a_1.png", "a_2.png"]
    assert files(tmp_path / "out") == ["take/a_1_depth.png", "take/a_2_depth.png"]
