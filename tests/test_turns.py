"""Who of a live shot comes first: the order of handing on, whoever is quicker."""

from __future__ import annotations

import threading
from pathlib import Path

from waiting import until

from watcher.frame import Frame, Identity, Source
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


def test_the_later_waits_for_the_earlier_of_its_shot() -> None:
    """It goes on as soon as the earlier has left, however that came."""
    turns, first, second, passed = Turns(), a_frame(7), a_frame(8), list[int]()
    turns.join(first, "a")
    turns.join(second, "a")
    thread = waiting_for(turns.loading, second, passed)
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
    line.end()
    until(lambda: len(passed) == 2)
    for thread in threads:
        thread.join(10)
