"""How busy each stage is, and which one sets the pace."""

from __future__ import annotations

from watcher.cli.looking import render
from watcher.effort import Effort, Gauge, Pulse, RunEffort, Span
from watcher.status import Snapshot


def _stages() -> dict[str, Effort]:
    return {"load": Effort(2), "run": Effort(1), "finish": Effort(2)}


def _worked(effort: Effort, number: int, from_s: float, until_s: float) -> None:
    effort.began(number, from_s)
    effort.ended(number, until_s)


def test_the_busiest_stage_is_the_bottleneck() -> None:
    """A stage's share is its threads' busy time over the time that passed; the largest one is named."""
    stages = _stages()
    gauge = Gauge(stages)
    gauge.look(100.0)
    _worked(stages["load"], 0, 101.0, 103.0)
    _worked(stages["run"], 0, 100.5, 109.5)
    _worked(stages["finish"], 0, 101.0, 105.0)
    _worked(stages["finish"], 1, 103.0, 109.0)
    shares = gauge.look(110.0)
    assert shares.busy == {"load": 0.1, "run": 0.9, "finish": 0.5}
    assert shares.bottleneck == "run"
    assert stages["finish"].took_ms == 6000


def test_a_second_look_that_comes_too_soon_repeats_the_first() -> None:
    """Two looks in a row never divide a moment's work by a moment."""
    stages = _stages()
    gauge = Gauge(stages, window_s=2.0)
    gauge.look(0.0)
    _worked(stages["finish"], 0, 0.5, 1.5)
    first = gauge.look(2.0)
    _worked(stages["run"], 0, 2.0, 2.4)
    assert gauge.look(2.5) == first
    assert gauge.look(4.0).bottleneck == "run"


def test_work_that_is_not_over_counts() -> None:
    """A run of many seconds is busy at every look, and no other stage is named for it."""
    stages = _stages()
    gauge = Gauge(stages)
    gauge.look(0.0)
    stages["run"].began(0, 0.5)
    _worked(stages["load"], 0, 0.0, 0.4)
    for now_s in (2.5, 5.0, 7.5):
        assert gauge.look(now_s).bottleneck == "run"
    assert gauge.look(10.0).busy == {"load": 0.0, "run": 1.0, "finish": 0.0}
    stages["run"].ended(0, 10.0)
    assert gauge.look(12.5).bottleneck == ""
    assert stages["run"].took_ms == 9500


def test_waiting_with_a_frame_in_hand_is_no_work() -> None:
    """A full volume does not make the finishers busy, and its minutes are not what a frame took."""
    effort = Effort(2)
    effort.began(1, 10.0)
    effort.rested(1, 11.0)
    assert effort.busy_s(500.0) == 1.0
    effort.resumed(1, 610.0)
    assert effort.busy_s(611.0) == 2.0
    effort.ended(1, 612.0)
    assert effort.busy_s(900.0) == 3.0
    assert effort.took_ms == 3000


def test_runs_side_by_side_are_busy_once() -> None:
    """One run of two that may be under way keeps the network busy; two at once do not make it busier."""
    under_way: list[Span] = [(1.0, None), (1.5, None)]
    effort = RunEffort(lambda: under_way)
    assert effort.threads == 1
    assert effort.busy_s(2.0) == 1.0
    under_way[0] = (1.0, 3.0)
    effort.ran(1.0, 3.0)
    assert effort.busy_s(4.0) == 3.0, "told, and still among the open ones: counted once"
    under_way[:] = [(1.5, 5.0)]
    assert effort.busy_s(9.0) == 4.0, "over, but not yet asked for its map"
    effort.ran(1.5, 5.0)
    under_way.clear()
    assert effort.busy_s(9.0) == 4.0
    assert effort.took_ms == 3500


def test_nothing_sets_the_pace_of_nothing() -> None:
    """While nothing is done no stage is called the bottleneck."""
    gauge = Gauge(_stages())
    gauge.look(0.0)
    assert gauge.look(10.0).bottleneck == ""


def test_a_person_reads_whether_the_network_waits() -> None:
    """``status`` says which stage sets the pace and how long the network waits for it."""
    text = render(
        Snapshot(
            running=True,
            pid=7,
            state="running",
            rate=3.0,
            stages_ms={"load": 10.0, "run": 20.0, "finish": 300.0},
            busy={"load": 0.1, "run": 0.25, "finish": 0.99},
            queues={"load": (2, 2), "run": (0, 3), "finish": (2, 2)},
            bottleneck="finish",
        )
    )
    assert "set by finish; the network waits 75% of the time" in text
    assert "finish 99% busy (2/2 waiting)" in text


def test_the_pulse_counts_what_is_over() -> None:
    """Maps a second in slots of two seconds, oldest first; the slot that goes on and what is older are left out."""
    pulse = Pulse()
    for at_s in (879.9, 880.0, 997.9, 998.0, 999.9, 1000.1):
        pulse.note(at_s)
    found = pulse.look(1000.5)
    assert len(found) == 60
    assert (found[0], found[-2], found[-1]) == (0.5, 0.5, 1.0)
    assert sum(found) == 2.0
