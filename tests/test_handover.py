"""The bounded queue between two kinds of thread."""

from __future__ import annotations

import threading

from watcher.handover import Handover


def test_first_in_first_out_and_the_bell() -> None:
    """Items come out in order, and the giver's side hears of each free place."""
    rung: list[int] = []
    queue: Handover[int] = Handover(3, on_take=lambda: rung.append(1))
    for number in range(3):
        assert not queue.full()
        queue.give(number)
    assert queue.full()
    assert len(queue) == queue.capacity == 3
    assert [queue.take() for _ in range(3)] == [0, 1, 2]
    assert len(rung) == 3


def test_a_full_queue_holds_back() -> None:
    """Whoever gives into a full queue waits until something is taken; nothing grows, nothing is lost."""
    queue: Handover[int] = Handover(1)
    queue.give(1)
    given = threading.Event()

    def give() -> None:
        queue.give(2)
        given.set()

    thread = threading.Thread(target=give)
    thread.start()
    assert not given.wait(0.05)
    assert queue.take() == 1
    assert given.wait(5)
    assert queue.take() == 2
    thread.join()


def test_the_end_reaches_every_taker() -> None:
    """After closing, what is left is drained, and then every taker gets the end, however many there are."""
    queue: Handover[int] = Handover(4)
    queue.give(1)
    queue.give(2)
    got: list[int | None] = []

    def take() -> None:
        while (item := queue.take()) is not None:
            got.append(item)
        got.append(None)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.close()
    for thread in threads:
        thread.join(5)
    assert sorted(item for item in got if item is not None) == [1, 2]
    assert got.count(None) == 3
    assert queue.take() is None


def test_a_taker_that_waits_for_something_else_too() -> None:
    """It gets what there is, and otherwise goes on as soon as it is told that the other thing has come."""
    queue: Handover[int] = Handover(2)
    other = threading.Event()
    taken: list[int | None] = []
    queue.give(1)
    other.set()
    assert queue.take(unless=other.is_set) == 1
    other.clear()

    def take() -> threading.Thread:
        thread = threading.Thread(target=lambda: taken.append(queue.take(unless=other.is_set)))
        thread.start()
        return thread

    waiting = take()
    queue.nudge()  # nothing has come
    queue.give(2)
    waiting.join()
    assert taken == [2]
    waiting = take()
    other.set()
    queue.nudge()
    waiting.join()
    assert taken == [2, None]
    queue.give(3)
    assert queue.take(unless=other.is_set) == 3
