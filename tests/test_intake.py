"""Random histories of an inbox, with events dropped, doubled, late and out of order: each content is done once."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rooms import files
from rooms import folder as make_folder

from watcher.course import Course, Troubles
from watcher.errors import SourceChanged, SourceGone
from watcher.frame import Frame, Outcome, Source, Wholeness
from watcher.intake import Intake, Pace
from watcher.intake.finding import Finder
from watcher.journal import Journal
from watcher.settle import Rules

NAMES = ["a.jpg", "b.jpg", "sub/c.jpg", "sub/d.jpg"]
PATIENCE_S = 600.0


class World:
    """An inbox, the intake's own hands, and a path that does one frame at a time when the test says so."""

    def __init__(self, place: Path, after: str) -> None:
        self.place, self.now, self.serial = place, 1000.0, 0
        self.folder = make_folder(place, folder__after=after)
        self.after = after
        self.events: list[str] = []
        self.written: dict[str, bytes] = {}  # what is in the inbox and whole, by name
        self.done: Counter[tuple[str, bytes]] = Counter()
        self.read_early: list[bytes] = []
        self.outbox: dict[str, bytes] = {}
        self.journal_path = place / "journal.db"
        self.journal = Journal(self.journal_path)
        self.journal.create()
        self.begin()

    def begin(self) -> None:
        """A process starts: what was in view is forgotten, what was in hand goes back."""
        for row in self.journal.in_state("attempt"):
            self.journal.give_back(row)
        troubles = Troubles()
        course = Course((self.folder,), self.journal_path, lambda *_: None, troubles, lambda: None)
        self.told = troubles._by_place
        pace = Pace(Rules(0.5, PATIENCE_S), 30.0)
        self.intake = Intake(course, pace)
        self.finder = Finder(course, self.journal, pace)
        self.finder.remember()

    # -- what people and programs do ------------------------------------------------------------------------------

    def write(self, name: str, whole: bool) -> None:
        self.serial += 1
        path = self.folder.inbox.folder / name
        path.parent.mkdir(exist_ok=True)
        data = f"{self.serial}{'.' if whole else ''}".encode()
        path.write_bytes(data)
        os.utime(path, ns=(self.serial, self.serial))
        self.written.pop(name, None)
        if whole:
            self.written[name] = data
        self.events.append(str(path))

    def remove(self, name: str) -> None:
        path = self.folder.inbox.folder / name
        path.unlink(missing_ok=True)
        self.written.pop(name, None)
        self.events.append(str(path))

    def rename(self, name: str, other: str) -> None:
        path, target = self.folder.inbox.folder / name, self.folder.inbox.folder / other
        if path.exists() and name != other:
            target.parent.mkdir(exist_ok=True)
            os.replace(path, target)
            data = self.written.pop(name, None)
            self.written.pop(other, None)
            if data is not None:
                self.written[other] = data
            self.events += [str(path), str(target)]

    # -- what the program does ------------------------------------------------------------------------------------

    def hint(self, number: int, times: int) -> None:
        """One of the events that are under way arrives, or is lost (0), or arrives twice."""
        if self.events:
            path = self.events.pop(number % len(self.events))
            for _ in range(times):
                self.finder.hinted(path)

    def turn(self) -> None:
        self.finder.scan_what_is_due(self.now)
        self.intake._hand_on(self.finder, self.journal)

    def work(self, during: Callable[[str], None] = lambda _: None) -> bool:
        """Do one frame from beginning to end; ``during`` happens between reading and disposing."""
        self.turn()
        if not len(self.intake.work):
            return False
        frame = self.intake.work.take()
        assert frame is not None
        self.finder.ended(frame, self._do(frame, during))
        return True

    def _do(self, frame: Frame, during: Callable[[str], None]) -> Outcome:
        source = frame.source
        try:
            data = self.folder.inbox.read(source, 1000).data
        except SourceGone:
            self.journal.forget(source.inbox, source.key, "attempt")
            return Outcome.GONE
        except SourceChanged:
            self.journal.give_back(frame)
            return Outcome.CHANGED
        during(source.rel)
        if not data.endswith(b"."):
            self.read_early.append(data)
        self.outbox[frame.base] = data
        self.done[source.rel, data] += 1
        self.journal.done(frame, [frame.base])
        try:
            if self.folder.inbox.dispose(source, self.after, self.place / "processed") or self.after == "delete":
                self._put_away(source, data)
        except SourceChanged:
            pass
        return Outcome.DONE

    def _put_away(self, source: Source, data: bytes) -> None:
        if self.written.get(source.rel) == data:
            del self.written[source.rel]

    def rest(self) -> None:
        """Everybody leaves it alone, and all events are lost: the rescan must find everything that is whole."""
        self.events.clear()
        for _ in range(12):
            self.now += 31
            self.turn()
            while self.work():
                self.turn()


def step(world: World, what: tuple[int, int, int]) -> None:
    kind, one, two = what
    if two % 4 == 3:
        world.hint(one, 1)  # most events arrive soon
    name, other = NAMES[one % 4], NAMES[two % 4]
    steps: list[Callable[[], object]] = [
        lambda: world.write(name, True),
        lambda: world.write(name, False),
        lambda: world.remove(name),
        lambda: world.rename(name, other),
        lambda: world.hint(one, two % 3),
        world.turn,
        world.work,
        lambda: world.work(lambda rel: world.write(rel, bool(two % 2))),
        lambda: world.work(world.remove),
        lambda: setattr(world, "now", world.now + (0.2, 0.6, 5.0, 40.0)[two % 4]),
        world.begin,
    ]
    steps[kind % len(steps)]()


@contextmanager
def world_of(after: str) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        world: World

        def look(source: Source) -> Wholeness:
            return Wholeness.WHOLE if source.path.read_bytes().endswith(b".") else Wholeness.PARTIAL

        patch.setattr("watcher.intake.looking.wholeness_of", look)
        for module in ("finding", "looking", "pace"):
            patch.setattr(f"watcher.intake.{module}.now_s", lambda: world.now)
        patch.setattr("watcher.intake.now_s", lambda: world.now)
        world = World(Path(place), after)
        yield world
        world.journal.close()


@given(
    st.sampled_from(["move", "keep", "delete"]),
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 3), st.integers(0, 11)), min_size=4, max_size=40),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens(after: str, history: list[tuple[int, int, int]]) -> None:
    """What is whole in the inbox in the end is done, with its newest content, once; nothing incomplete ever is."""
    with world_of(after) as world:
        for what in history:
            step(world, what)
        there = dict(world.written)
        world.rest()
        assert world.read_early == []
        for name, data in there.items():
            assert world.done[name, data] == 1, f"{name} {data!r} was done {world.done[name, data]} times"
            names = sum(other == data for _, other in world.done)  # a kept file that is renamed is a new source
            assert list(world.outbox.values()).count(data) == names
        assert all(count == 1 for count in world.done.values()), world.done
        left = set(files(world.folder.inbox.folder))
        incomplete = {name for name in left if not (world.folder.inbox.folder / name).read_bytes().endswith(b".")}
        assert left - incomplete == (set(there) if after == "keep" else set())
        assert world.finder.waiting == len(incomplete)
        assert not world.finder.in_flight


def test_truncated_for_hours() -> None:
    """What stays incomplete is looked at again and again, never read, until its patience is over."""
    with world_of("move") as world:
        world.write("a.jpg", False)
        for _ in range(20):
            world.now += 31
            world.turn()
            assert not world.work()
        world.now += 31
        world.turn()
        assert len(world.intake.work) == 1
        frame = world.intake.work.take()
        assert frame is not None
        assert not frame.patient


# --- a backlog beyond the window --------------------------------------------------------------------------------------


def fill(world: World, *names: str) -> None:
    for name in names:
        world.write(name, whole=True)


def order(world: World) -> list[str]:
    """The names in the order in which they are done, from here to the end."""
    names: list[str] = []
    while world.work(names.append):
        pass
    return names


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose window has four places."""
    for module in ("watcher.backlog", "watcher.intake.finding"):
        monkeypatch.setattr(f"{module}.WINDOW", 4)
    with world_of("move") as world:
        yield world


def names(count: int) -> list[str]:
    return [f"m{number:03}.jpg" for number in range(count)]


@pytest.mark.parametrize("heard", [False, True], ids=["found by a scan", "told by events"])
def test_first_come_first_served(narrow: World, heard: bool) -> None:
    """What came first is done first, by name inside one arrival, however many wait, whatever they are called."""
    fill(narrow, *names(9))
    narrow.turn()
    fill(narrow, "z.jpg", "a5.jpg", "a4.jpg")
    narrow.finder.arrivals += 1
    for path in narrow.events[9:] if heard else ():
        narrow.finder.hinted(path)
    narrow.now += 31
    narrow.turn()
    fill(narrow, "a1.jpg")
    narrow.now += 31
    assert order(narrow) == [*names(9), "a4.jpg", "a5.jpg", "z.jpg", "a1.jpg"]


def test_order_survives_a_restart(narrow: World) -> None:
    """A process that starts anew goes on where the one before it was; what came meanwhile comes last."""
    fill(narrow, *names(12))
    narrow.turn()
    assert narrow.work()
    fill(narrow, "a1.jpg")
    narrow.begin()
    assert order(narrow) == [*names(12)[1:], "a1.jpg"]
    assert not narrow.journal.anyone_in_line()


def test_names_that_leave_the_line(narrow: World) -> None:
    """What is taken away while it waits is not waited for, and what comes back is done."""
    fill(narrow, *names(12))
    narrow.turn()
    assert narrow.finder.waiting + len(narrow.finder.in_flight) == 12
    for name in names(12)[5:]:
        narrow.remove(name)
    assert order(narrow) == names(5)
    assert narrow.finder.waiting == 0
    assert not narrow.journal.anyone_in_line()
    fill(narrow, "m007.jpg")
    narrow.now += 31
    assert order(narrow) == ["m007.jpg"]


def test_names_that_leave_view(narrow: World) -> None:
    """Whoever came into view from the line and is taken away there is counted once, and the others get their turn."""
    fill(narrow, *names(24))
    narrow.turn()
    for _ in range(3):
        seen = sorted(key for _, key in narrow.finder.backlog.entries)
        for name in seen[1:3]:
            narrow.remove(name)
            narrow.finder.hinted(str(narrow.folder.inbox.folder / name))
        narrow.turn()
        left = sorted(path.name for path in narrow.folder.inbox.folder.iterdir())
        assert narrow.finder.waiting + len(narrow.finder.in_flight) == len(left)
    left = sorted(path.name for path in narrow.folder.inbox.folder.iterdir())
    assert sorted(order(narrow)) == left
    assert narrow.finder.waiting == 0


def test_counts_add_up_beyond_the_window(narrow: World) -> None:
    """Every file is counted once, whether it is in view or in line, and however often it is found."""
    fill(narrow, *names(10))
    for _ in range(3):
        narrow.now += 31
        narrow.turn()
        for path in narrow.events:
            narrow.finder.hinted(path)
    narrow.turn()
    assert narrow.finder.waiting + len(narrow.finder.in_flight) == 10


def test_what_is_no_picture_takes_no_place(narrow: World) -> None:
    """An event of a file that is no picture is counted as ignored, also while others wait in line."""
    fill(narrow, *names(10))
    narrow.turn()
    narrow.intake.pause(True)
    note = narrow.folder.inbox.folder / "note.txt"
    note.write_text("words")
    narrow.finder.hinted(str(note))
    narrow.finder.hinted(str(note))
    narrow.turn()
    assert (narrow.finder.waiting + len(narrow.finder.in_flight), narrow.finder.ignored) == (10, 1)


def test_only_the_window_is_in_memory(narrow: World) -> None:
    """However many wait, only the window is held in memory, and all are done in their order."""
    fill(narrow, *names(300))
    narrow.turn()
    assert len(narrow.finder.backlog) <= 4
    assert order(narrow) == names(300)


def test_incomplete_files_are_named(narrow: World) -> None:
    """The first few files that wait for their end are known, with the time when they are tried as they are."""
    narrow.write("b.jpg", whole=False)
    narrow.turn()
    narrow.now += 40
    narrow.write("a.jpg", whole=False)
    narrow.turn()
    found = [(entry.source.rel, until_s) for entry, until_s in narrow.finder.incomplete()]
    assert found == [("a.jpg", 1640.0), ("b.jpg", 1600.0)]
    narrow.write("a.jpg", whole=True)
    narrow.remove("b.jpg")
    narrow.rest()
    assert narrow.finder.incomplete() == []


@pytest.mark.parametrize("held", [2, 10], ids=["in view", "beyond the window"])
def test_an_inbox_that_is_away(narrow: World, held: int) -> None:
    """An inbox that was renamed away says nothing about its files: they are waited for, told, and done in order."""
    fill(narrow, *names(held))
    narrow.finder._remake = False
    narrow.intake.pause(True)
    narrow.turn()
    narrow.intake.pause(False)
    inbox = narrow.folder.inbox.folder
    os.rename(inbox, narrow.place / "elsewhere")
    for _ in range(3):
        assert order(narrow) == []
        narrow.now += 31
    narrow.intake._set_idle(narrow.finder)
    assert narrow.finder.waiting == held
    assert not narrow.intake.idle.is_set()
    assert narrow.told
    os.rename(narrow.place / "elsewhere", inbox)
    narrow.now += 61
    assert order(narrow) == names(held)
    assert not narrow.told
