"""The window of files in view: order, due times, back-off, bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from watcher import backlog
from watcher.backlog import Backlog, Entry, Handled, fresh
from watcher.frame import Identity, Source, Wholeness
from watcher.settle import Rules, sight

RULES = Rules(settle_s=0.5, patience_s=600)


def entry(name: str, arrival: int = 1, *, wholeness: Wholeness = Wholeness.WHOLE, now: float = 0) -> Entry:
    source = Source(Path("/in"), name, name, Identity(1, 1))
    return fresh(0, source, wholeness, arrival, now)


def drain(held: Backlog) -> list[str]:
    order = []
    while (found := held.next_settled()) is not None:
        order.append(found.source.rel)
        held.drop(found.key)
    return order


def test_order() -> None:
    """First come, first served; by name inside one arrival; suspects before all."""
    held = Backlog(RULES)
    late = entry("suspect", 9)
    late.alone = True
    for one in (entry("b", 2), entry("z", 1), entry("a", 2), entry("c", 1), late):
        held.sight(one, 0)
    assert drain(held) == ["suspect", "c", "z", "a", "b"]


def test_next_stays_until_dropped() -> None:
    """Asking whose turn it is takes nothing away."""
    held = Backlog(RULES)
    held.sight(entry("a"), 0)
    assert held.next_settled() is held.next_settled() is not None
    held.drop((0, "a"))
    held.drop((0, "a"))
    assert held.next_settled() is None
    assert len(held) == 0


def test_due() -> None:
    """A waiting file is due when it may have settled, once for each sighting, and not after it was dropped."""
    held = Backlog(RULES)
    held.sight(entry("a", wholeness=Wholeness.UNKNOWN), 0)
    gone = entry("b", wholeness=Wholeness.UNKNOWN)
    held.sight(gone, 0)
    held.drop(gone.key)
    assert held.next_settled() is None
    assert held.next_look_s() == 0.5
    assert held.due(0.4) == []
    found = held.due(0.5)
    assert [one.source.rel for one in found] == ["a"]
    assert held.due(99) == []
    found[0].waiting = sight(found[0].waiting, found[0].source.identity, Wholeness.UNKNOWN, 0.5)
    held.sight(found[0], 0.5)
    assert drain(held) == ["a"]


def test_a_newer_sighting_voids_the_older() -> None:
    """A file that settled and then changed is not handed on by what was said before."""
    held = Backlog(RULES)
    one = entry("a")
    held.sight(one, 0)
    one.waiting = sight(one.waiting, Identity(2, 2), Wholeness.UNKNOWN, 1)
    held.sight(one, 1)
    assert held.next_settled() is None
    assert held.due(1.5) == [one]


def test_back_off_doubles_up_to_a_minute() -> None:
    """A volume in the way is asked less and less often, never less than once a minute, and forgiven at once."""
    held = Backlog(RULES)
    now, pauses = 0.0, []
    for _ in range(8):
        held.put_off(entry("a"), now)
        next_s = held.next_look_s()
        assert next_s is not None
        pauses.append(next_s - now)
        now = next_s
        assert len(held.due(now)) == 1
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    held.forgive((0, "a"))
    held.put_off(entry("a"), now)
    assert held.next_look_s() == now + 2


def test_a_put_off_suspect_does_not_block() -> None:
    """What is put off leaves its turn to the others."""
    held = Backlog(RULES)
    late = entry("suspect")
    late.alone = True
    held.put_off(late, 0)
    held.sight(entry("a"), 0)
    assert drain(held) == ["a"]


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window has an end, and the heaps do not keep what was dropped from it."""
    monkeypatch.setattr(backlog, "WINDOW", 2)
    held = Backlog(RULES)
    assert held.room() == 2
    for name in "abc":
        held.sight(entry(name), 0)
    assert held.room() == 0


def test_endless_sightings_do_not_grow() -> None:
    """A file that changes for ever costs no memory: void notes are thrown away."""
    held = Backlog(RULES)
    one = entry("a", wholeness=Wholeness.UNKNOWN)
    for step in range(10_000):
        now = step * 0.1
        one.waiting = sight(one.waiting, Identity(step, step), Wholeness.UNKNOWN, now)
        held.sight(one, now)
        assert held.due(now) == []
    assert len(held._due) < 1000


def test_a_blocked_backlog_does_not_grow() -> None:
    """While the first file is held back for days, looking at the others again and again costs no memory."""
    held = Backlog(RULES)
    names = [f"{number:02}" for number in range(50)]
    for step in range(200):
        for name in names:
            held.sight(held.entries.get((0, name)) or entry(name), step)
    assert len(held._settled) < 1000
    assert drain(held) == names


def test_handled_is_bounded() -> None:
    """What needs no second look is remembered up to a bound, and said to be full beyond."""
    known = Handled(most=2)
    for number in range(3):
        known.add(0, "a", Identity(number, 0, 5, 5))
    assert known.full
    assert (0, "a", Identity(1, 0, 7, 7)) in known  # device and inode may differ after a restart
    assert (0, "a", Identity(2, 0)) not in known
    assert (1, "a", Identity(1, 0)) not in known
