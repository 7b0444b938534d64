"""Between the threads: what intake, loader and finisher do when a place is slow, blocked, full or silent."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import make_picture
from fake_session import FakeSession
from rooms import files, settings
from rooms import folder as make_folder

from watcher import backlog, inbox, intake, network
from watcher.backlog import Backlog
from watcher.clock import now_s
from watcher.course import Course, Troubles
from watcher.daemon import Daemon
from watcher.errors import ExitCode
from watcher.folder import Folder
from watcher.frame import Outcome, Source
from watcher.inbox import Inbox, Taken
from watcher.intake import Intake, Pace
from watcher.intake.finding import Finder
from watcher.journal import Journal
from watcher.session import Shape
from watcher.settle import Rules

PACE = Pace(Rules(0.5, 600.0), 30.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that costs nothing."""
    monkeypatch.setattr(network.Network, "open", lambda _self: FakeSession(Shape(16, 24)))


class Bench:
    """A finder on a folder of its own, driven by the test."""

    def __init__(self, place: Path) -> None:
        self.folder: Folder = make_folder(place)
        self.journal = Journal(place / "journal.db")
        self.journal.create()
        self.troubles = Troubles()
        self.course = Course((self.folder,), self.journal.path, lambda *_: None, self.troubles, lambda: None)
        self.finder = Finder(self.course, self.journal, PACE)

    def scan(self) -> None:
        self.finder.rescan()
        self.finder.scan_what_is_due(1.0)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.journal.close()


@pytest.mark.usefixtures("quick")
def test_a_slow_volume_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading that takes longer than a run may take blames nobody: only decoding is held to the limit."""
    real = Inbox.read

    def slow(self: Inbox, source: Source, max_bytes: int) -> Taken:
        threading.Event().wait(0.8)
        return real(self, source, max_bytes)

    monkeypatch.setattr(Inbox, "read", slow)
    make_picture(tmp_path / "in" / "a.png")
    assert Daemon(settings(tmp_path, limits__run_timeout_s=0.2), once=True).run() == ExitCode.DONE
    assert files(tmp_path / "out") == ["a_depth.png"]


@pytest.mark.usefixtures("quick")
def test_a_file_in_the_way_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not ours to replace, and stops nobody: the map gets the next name."""

    def refuse(path: Path) -> Any:
        raise PermissionError(errno.EACCES, "no", str(path))

    monkeypatch.setattr("watcher.origin.read_facts", refuse)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a_depth.png").write_bytes(b"somebody's")
    make_picture(tmp_path / "in" / "a.png")
    assert Daemon(settings(tmp_path), once=True).run() == ExitCode.DONE
    assert files(tmp_path / "out") == ["a.png_depth.png", "a_depth.png"]
    assert (tmp_path / "out" / "a_depth.png").read_bytes() == b"somebody's"


def test_once_waits_for_a_model_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading may take longer than `once` waits beside a trouble; nothing has come to a stand while it lasts."""
    monkeypatch.setattr("watcher.daemon._ONCE_STUCK_S", 0.1)
    looked, real = threading.Event(), Daemon._over

    def over(self: Daemon) -> bool:
        ended = real(self)
        if now_s() - self._quiet_since_s > 0.1:
            looked.set()
        return ended

    def load(_: network.Network) -> FakeSession:
        assert looked.wait(30)
        return FakeSession(Shape(16, 24))

    monkeypatch.setattr(Daemon, "_over", over)
    monkeypatch.setattr(network.Network, "open", load)
    make_picture(tmp_path / "in" / "a.png")
    made = Daemon(settings(tmp_path), once=True)
    made._troubles.tell("elsewhere", "cannot be read")
    assert made.run() == ExitCode.TRY_LATER  # for the trouble; the picture itself is done
    assert files(tmp_path / "out") == ["a_depth.png"]


@pytest.mark.usefixtures("quick")
def test_a_daemon_that_rests_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing is left to do, what the frames were made in goes back to the system."""
    ended, given_back = list[Outcome](), list[int]()
    make_picture(tmp_path / "in" / "a.png")
    made = Daemon(settings(tmp_path), once=False, heard=lambda _, outcome: ended.append(outcome))
    until_s = now_s() + 30

    def look() -> None:
        if (ended and given_back) or now_s() > until_s:
            made._lost = "the test is over"

    monkeypatch.setattr("watcher.memory.give_back", lambda: given_back.append(len(ended)) if ended else None)
    monkeypatch.setattr(made, "_check_journal", look)
    assert made.run() == ExitCode.TRY_LATER
    assert ended == [Outcome.DONE]
    assert given_back


@pytest.mark.usefixtures("quick")
def test_a_journal_that_cannot_be_opened_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intake tells it and waits, as for every other moment at which the journal's disk is away."""
    refused: list[str] = []
    real = sqlite3.connect

    def connect(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread().name == "intake" and len(refused) < 2:
            refused.append("intake")
            raise sqlite3.OperationalError("unable to open database file")
        return real(*args, **kwargs)

    monkeypatch.setattr("watcher.journal.store.sqlite3.connect", connect)
    make_picture(tmp_path / "in" / "a.png")
    assert Daemon(settings(tmp_path), once=True).run() == ExitCode.DONE
    assert len(refused) == 2
    assert files(tmp_path / "out") == ["a_depth.png"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("thread", ["intake", "loader-0", "finisher-1"])
def test_a_journal_that_cannot_be_opened_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread: str) -> None:
    """What nobody expected in opening it ends the process instead of leaving one that takes no file."""
    real = sqlite3.connect

    def connect(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread().name == thread:
            raise RuntimeError("nobody thought of this")
        return real(*args, **kwargs)

    monkeypatch.setattr("watcher.journal.store.sqlite3.connect", connect)
    make_picture(tmp_path / "in" / "a.png")
    assert Daemon(settings(tmp_path), once=True).run() == ExitCode.INTERNAL
    assert files(tmp_path / "in") == ["a.png"]


@pytest.mark.parametrize("overgrown", [False, True])
def test_an_end_while_the_model_loads_is_no_crash_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overgrown: bool
) -> None:
    """Whatever ends the process, a provider that is just tried gets no strike for it, unless memory ran out."""
    gate, forgiven = threading.Event(), []

    def load(_: network.Network) -> FakeSession:
        gate.wait()
        return FakeSession(Shape(16, 24))

    def leave(code: int) -> None:
        gate.set()
        raise SystemExit(code)

    monkeypatch.setattr("watcher.daemon.STOP_BUDGET_S", 0.1)
    monkeypatch.setattr("watcher.daemon.os._exit", leave)
    monkeypatch.setattr(network.Network, "open", load)
    monkeypatch.setattr(network.Network, "ends_on_purpose", lambda _: forgiven.append(1))
    made = Daemon(settings(tmp_path), once=False)
    if overgrown:
        monkeypatch.setattr(made._guard, "look", lambda _: "too large")
        monkeypatch.setattr("watcher.daemon._MEMORY_PAUSE_S", 0.0)
    else:
        monkeypatch.setattr(made, "_check_journal", lambda: setattr(made, "_lost", "the journal was taken away"))
    with pytest.raises(SystemExit) as left:
        made.run()
    assert left.value.code == ExitCode.TRY_LATER
    assert len(forgiven) == (0 if overgrown else 1)
    rooms = made._rooms  # the process would have gone
    rooms.loader.ready.close()
    assert rooms.engine.join(30)
    rooms.engine.raw.close()
    assert rooms.finisher.join(30)


def test_a_scan_without_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full window hides nothing: what is beyond it is counted, and an inbox that cannot be read is noticed."""
    monkeypatch.setattr(Backlog, "room", lambda self: max(0, 2 - len(self.entries)))
    for number in range(5):
        make_picture(bench.folder.inbox.folder / f"{number}.png")
    for _ in range(3):
        bench.scan()
        assert bench.finder.waiting == 5
    (bench.folder.inbox.folder / "Thumbs.db").touch()
    bench.scan()
    assert bench.finder.ignored == 1

    def refuse(_path: object) -> Any:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "scandir", refuse)
    bench.scan()
    assert bench.finder.unread == {0}
    assert bench.troubles.lines()


def test_a_sub_folder_that_can_be_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trouble is over with the first scan that gets in."""
    make_picture(bench.folder.inbox.folder / "sub" / "a.png")
    real = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("sub"):
            raise OSError(errno.EACCES, "no", str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(inbox.os, "scandir", refuse)  # type: ignore[attr-defined]
        bench.scan()
        bench.scan()
        assert len(bench.troubles.lines()) == 1
    bench.scan()
    assert bench.troubles.lines() == []
    assert bench.finder.waiting == 1


class Listener:
    """Stands in for the finder and notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.arrivals = 0
        self.in_flight: dict[object, object] = {}
        self.suspects: set[object] = set()
        self.unread: set[int] = set()
        self.waiting = self.ignored = 0
        self.backlog = backlog.Backlog(PACE.rules)

    def hinted(self, path: str) -> None:
        self.told.append(path)

    def incomplete(self) -> list[object]:
        return []

    def __getattr__(self, name: str) -> Callable[..., float]:
        def note(*_args: object) -> float:
            self.told.append(f"({name})")
            return 0.0

        return note


@pytest.fixture
def mailbox(bench: Bench) -> tuple[Intake, Listener, Callable[[], bool]]:
    made, listener = Intake(bench.course, PACE), Listener()
    return made, listener, lambda: made._turn(cast(Finder, listener), bench.journal)


def test_too_many_hints(mailbox: tuple[Intake, Listener, Callable[[], bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints that do not fit are not lost: one look at everything stands for them, whatever else lies in the mailbox."""
    made, listener, turn = mailbox
    monkeypatch.setattr(intake, "_HINTS_MOST", 3)
    for number in range(3):
        made.hint(f"/in/{number}")
    made.rescan()  # other mail, which jumps over the exact count
    listener.told.clear()
    for number in range(50):
        made.hint(f"/in/late-{number}")
    assert turn()
    assert listener.told.count("(rescan)") == 2  # the one that was asked for, and the one that stands for fifty


def test_a_path_that_is_named_twice(mailbox: tuple[Intake, Listener, Callable[[], bool]]) -> None:
    """It is looked at once, after the last time that it was named, when everything else has been taken out."""
    made, listener, turn = mailbox
    for path in ("/in/a", "/in/b", "/in/a"):
        made.hint(path)
    assert turn()
    assert [path for path in listener.told if path.startswith("/")] == ["/in/a", "/in/b"]


def test_a_stop_does_not_wait_behind_hints(mailbox: tuple[Intake, Listener, Callable[[], bool]]) -> None:
    """Thousands of hints are worth nothing to a process that is to end."""
    made, listener, turn = mailbox
    for number in range(1000):
        made.hint(f"/in/{number}")
    made.stop()
    assert not turn()
    assert [path for path in listener.told if path.startswith("/")] == []
