"""The engine with a network that has lanes: the next run is begun before the one under way is over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_session import FakeSession, mean_of_channels
from waiting import until

from watcher.clock import now_s
from watcher.config import Limits
from watcher.course import Course, Troubles
from watcher.daemon.limits import hands
from watcher.depth import Plan
from watcher.engine import Engine
from watcher.finisher import Finisher
from watcher.frame import Float32, Frame, Identity, Ready, Source
from watcher.handover import Handover
from watcher.loader import Loader
from watcher.session import Report, Shape

SHAPE = Shape(16, 24)


class Gates:
    """A network whose runs wait until they are let through, each by its number (the tensor's mean, 1 and up)."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.fails: set[int] = set()
        self.flat: set[int] = set()
        self._open: set[int] = set()
        self._news = threading.Condition()

    def let(self, *numbers: int) -> None:
        with self._news:
            self._open.update(numbers)
            self._news.notify_all()

    def answer(self, tensor: Float32) -> Float32:
        number = round(float(tensor.mean()))
        if number == 0 or float(tensor.std()) == 0:  # the warm-up
            return mean_of_channels(tensor)
        with self._news:
            self.begun.append(number)
            self._news.wait_for(lambda: number in self._open)
        if number in self.fails:
            raise ValueError("broken")
        made = mean_of_channels(tensor)
        return np.zeros_like(made) if number in self.flat else made


def ready(number: int) -> Ready:
    source = Source(Path("/in"), f"{number}.png", f"{number}.png", Identity(1, 1))
    ramp = np.linspace(number - 0.3, number + 0.3, 16 * 24, dtype=np.float32).reshape(16, 24)
    return Ready(Frame(number, source, 0, str(number)), np.stack([ramp] * 3)[None], 16, 24, {})


class Life:
    """An engine between two hand-overs, driven by the test."""

    def __init__(
        self, gates: Gates, condemn: Callable[[Report, Float32], bool] = lambda _report, _tensor: False
    ) -> None:
        self.sessions: list[FakeSession] = []
        self.gates = gates
        self.engine = Engine(self._open, lambda _: Plan(height_px=16, width_px=24), condemn)
        self.ready: Handover[Ready] = Handover(8)
        self.engine.start(self.ready, lambda: None)

    def _open(self) -> FakeSession:
        self.sessions.append(FakeSession(SHAPE, self.gates.answer, lanes=2))
        return self.sessions[-1]

    def give(self, *numbers: int) -> None:
        for number in numbers:
            self.ready.give(ready(number))

    def taken(self, count: int) -> list[int]:
        """The numbers of so many maps, as the finishers get them."""
        found = []
        for _ in range(count):
            raw = self.engine.raw.take()
            assert raw is not None
            assert round(float(raw.depth.mean())) == raw.frame.id
            found.append(raw.frame.id)
        return found

    def end(self) -> None:
        self.ready.close()
        assert self.engine.join(30)


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def life(gates: Gates) -> Iterator[Life]:
    made = Life(gates)
    yield made
    gates.let(*range(1, 100))
    made.end()


def test_the_next_is_begun_before_the_last_is_over(life: Life, gates: Gates) -> None:
    """Two are under way, never three."""
    life.give(1, 2, 3)
    until(lambda: len(gates.begun) == 2)
    assert sorted(gates.begun) == [1, 2]
    gates.let(1)
    assert life.taken(1) == [1]
    until(lambda: gates.begun[2:] == [3])


def test_handed_on_in_the_order_in_which_they_came(life: Life, gates: Gates) -> None:
    """A run that is over before an earlier one waits for it: the frames of a live shot must not change places."""
    life.give(1, 2, 3)
    until(lambda: len(gates.begun) == 2)
    gates.let(2, 3)
    until(lambda: [held.held for held in list(life.engine.under_way)] == [True, False])
    gates.let(1)
    assert life.taken(3) == [1, 2, 3]


def test_one_alone_is_not_kept_waiting(life: Life, gates: Gates) -> None:
    """A frame that nothing follows is handed on when its run is over."""
    gates.let(1)
    life.give(1)
    assert life.taken(1) == [1]


def test_what_is_under_way_at_a_stop_is_handed_on(life: Life, gates: Gates) -> None:
    """The runs that were begun are not thrown away; what has not begun is."""
    life.give(1, 2, 3)
    until(lambda: len(gates.begun) == 2)
    life.engine.give_up_waiting()
    gates.let(1, 2)
    assert life.taken(2) == [1, 2]
    life.end()
    assert len(gates.begun) == 2
    assert life.sessions[0].closed


def test_the_one_that_fails_is_named(life: Life, gates: Gates) -> None:
    """A failure is of the frame whose run it was, not of the one before or after it; the session outlives both runs."""
    gates.fails = {2}
    life.give(1, 2, 3)
    until(lambda: len(gates.begun) == 2)
    gates.let(2)
    gates.let(1)
    assert life.taken(1) == [1]
    until(lambda: len(gates.begun) == 3)
    assert not life.sessions[0].closed
    gates.let(3)
    life.end()
    assert life.engine.failure is not None
    guilty = life.engine.under_way[0].frame
    assert guilty is not None
    assert guilty.id == 2
    assert life.sessions[0].closed


def test_another_session_waits_for_what_is_under_way(gates: Gates) -> None:
    """A session that is given up is closed after its runs; the frame is run again by the next, and none is lost."""
    condemned: list[int] = []

    def condemn(_report: Report, tensor: Float32) -> bool:
        condemned.append(round(float(tensor.mean())))
        gates.flat.clear()
        return True

    gates.flat = {1}
    life = Life(gates, condemn)
    life.give(1, 2)
    until(lambda: len(gates.begun) == 2)
    gates.let(1)
    until(lambda: condemned == [1])
    assert not life.sessions[0].closed
    gates.let(2)
    assert life.taken(2) == [1, 2]
    life.end()
    assert [session.closed for session in life.sessions] == [True, True]


def test_each_run_is_held_to_its_limit(life: Life, gates: Gates, tmp_path: Path) -> None:
    """Every run under way is watched; one that is over and waits for its turn is not."""
    course = Course((), tmp_path / "journal.db", lambda *_: None, Troubles(), lambda: None)
    limits = Limits(run_timeout_s=5.0)
    loader, finisher = Loader(course, limits), Finisher(course, dict)

    def watched() -> list[str]:
        found = list(hands(loader, life.engine, finisher, limits))
        assert all(hand.overdue(now_s() + 5) and not hand.overdue(hand.since_s + 4) for hand in found)
        return [str(hand) for hand in found]

    life.give(1, 2)
    until(lambda: len(gates.begun) == 2)
    assert [line.split(" took")[0] for line in watched()] == [
        "the network's run of 1.png",
        "the network's run of 2.png",
    ]
    gates.let(2)
    until(lambda: len(watched()) == 1)
    assert "1.png" in watched()[0]
