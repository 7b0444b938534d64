"""Notifications become hints, watching cannot die quietly, and what FSEvents really says is understood."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until
from watchdog.events import (
    DirModifiedEvent,
    FileClosedEvent,
    FileClosedNoWriteEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileOpenedEvent,
    FileSystemEvent,
)
from watchdog.observers.api import BaseObserver, EventQueue, ObservedWatch

from watcher import watch as room
from watcher.watch import Root, Watch


class Heard:
    """What was hinted, and the means to wait for it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str) -> None:
        self.paths.append(path)

    def wait_for(self, path: Path) -> None:
        until(lambda: str(path) in self.paths, 10, f"a hint of {path}")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "in"
    made.mkdir()
    return made


@pytest.fixture
def watching(place: Path, heard: Heard) -> Iterator[Watch]:
    made = Watch([Root(place, True)], heard)
    made.start()
    yield made
    made.stop()


# --- real notifications -----------------------------------------------------------------------------------------------


def write(path: Path) -> Path:
    path.write_bytes(b"x")
    return path


def rename_in(path: Path) -> Path:
    outside = path.parent.parent / "outside"
    outside.write_bytes(b"x")
    os.replace(outside, path)
    return path


def rename_inside(path: Path) -> Path:
    temporary = path.with_name(".temporary")
    temporary.write_bytes(b"x")
    os.replace(temporary, path)
    return path


def link(path: Path) -> Path:
    outside = path.parent.parent / "outside"
    outside.write_bytes(b"x")
    os.link(outside, path)
    return path


def folder_moved_in(path: Path) -> Path:
    outside = path.parent.parent / "folder"
    outside.mkdir()
    (outside / path.name).write_bytes(b"x")
    os.replace(outside, path.parent / "folder")
    return path.parent / "folder"


@pytest.mark.parametrize("how", [write, rename_in, rename_inside, link, folder_moved_in])
@pytest.mark.parametrize("name", ["a.jpg", "line\nbreak 🙂.jpg", "\udcff.jpg"])
@pytest.mark.usefixtures("watching")
def test_what_arrives_is_hinted(place: Path, heard: Heard, how: Callable[[Path], Path], name: str) -> None:
    """However a file comes, its path (or that of the folder that it came in) is hinted, as the folder gives it."""
    heard.wait_for(how(place / name))


@pytest.mark.usefixtures("watching")
def test_reading_is_no_news(place: Path, heard: Heard) -> None:
    """Hints do not feed on themselves: looking at a file hints nothing."""
    path = write(place / "a.jpg")
    heard.wait_for(path)
    heard.wait_for(write(place / "fence-1"))
    count = heard.paths.count(str(path))
    for _ in range(3):
        path.read_bytes()
    heard.wait_for(write(place / "fence-2"))
    assert heard.paths.count(str(path)) == count


@pytest.mark.parametrize(
    ("event", "hinted"),
    [
        (FileCreatedEvent("/in/a"), ["/in/a"]),
        (FileModifiedEvent("/in/a"), ["/in/a"]),
        (FileClosedEvent("/in/a"), ["/in/a"]),
        (FileMovedEvent("/in/.a", "/in/a"), ["/in/a"]),
        (FileCreatedEvent(b"/in/\xff"), ["/in/\udcff"]),
        (FileOpenedEvent("/in/a"), []),
        (FileClosedNoWriteEvent("/in/a"), []),
        (FileDeletedEvent("/in/a"), []),
        (DirModifiedEvent("/in"), []),
    ],
)
def test_which_events_count(heard: Heard, event: FileSystemEvent, hinted: list[str]) -> None:
    """What may be a new frame is told, by its newest name; the rest is not."""
    room._Hints(heard).dispatch(event)
    assert heard.paths == hinted


def test_an_error_behind_the_hint(place: Path) -> None:
    """An exception in whoever listens does not end the watching."""
    seen: list[str] = []

    def listen(path: str) -> None:
        seen.append(path)
        raise RuntimeError("nobody expected this")

    watch = Watch([Root(place, True)], listen)
    watch.start()
    for name in ("a", "b"):
        path = write(place / name)
        until(lambda path=path: str(path) in seen, 10)  # type: ignore[misc]
    assert watch.check() is None
    watch.stop()


# --- dying ------------------------------------------------------------------------------------------------------------


def observer_of(watch: Watch) -> BaseObserver:
    assert watch._observer is not None
    return watch._observer


def end(thread: Any) -> None:
    thread.stop()
    thread.join()


def remove_and_recreate(watch: Watch, place: Path) -> None:
    place.rename(place.with_name("old"))  # the new folder must not get the old one's number
    place.mkdir()


BREAKAGES: dict[str, Callable[[Watch, Path], None]] = {
    "the observer's thread had ended": lambda watch, _: end(observer_of(watch)),
    "an emitter's thread had ended": lambda watch, _: end(next(iter(observer_of(watch).emitters))),
    "an inbox came, went or was replaced": remove_and_recreate,
    "no observer was running": lambda watch, _: watch.stop(),
}


@pytest.mark.parametrize("why", BREAKAGES)
def test_watching_is_started_anew(watching: Watch, place: Path, heard: Heard, why: str) -> None:
    """Whatever ends the watching is noticed, named, and mended."""
    assert watching.check() is None
    BREAKAGES[why](watching, place)
    assert watching.check() == why
    assert watching.check() is None
    heard.wait_for(write(place / "after.jpg"))


def test_a_root_that_goes_and_comes(watching: Watch, place: Path, heard: Heard) -> None:
    """An unmounted inbox is no busy loop; when it is back it is watched again."""
    shutil.rmtree(place)
    assert watching.check() is not None
    assert watching.check() is None
    place.mkdir()
    assert watching.check() is not None
    heard.wait_for(write(place / "a.jpg"))


def test_a_root_that_is_missing_at_first(tmp_path: Path, heard: Heard) -> None:
    """An inbox that is made later is watched from then on, and the others all the time."""
    here, later = Path(os.path.realpath(tmp_path)) / "here", Path(os.path.realpath(tmp_path)) / "later"
    here.mkdir()
    watch = Watch([Root(here, True), Root(later, False)], heard)
    watch.start()
    heard.wait_for(write(here / "a"))
    assert watch.check() is None
    later.mkdir()
    assert watch.check() is not None
    heard.wait_for(write(later / "b"))
    watch.stop()


@pytest.mark.parametrize(
    "error", [OSError(28, "inotify watch limit reached"), SystemError("no stream"), RuntimeError()]
)
def test_a_system_that_refuses(
    place: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Without events the work goes on by rescans; the system is asked again after a minute, not at each look."""
    now = [1000.0]
    asked = [0]

    def start(self: BaseObserver) -> None:
        asked[0] += 1
        raise error

    monkeypatch.setattr(room, "now_s", lambda: now[0])
    watch = Watch([Root(place, True)], heard)
    with monkeypatch.context() as patch:
        patch.setattr(BaseObserver, "start", start)
        watch.start()
        for _ in range(5):
            assert watch.check() is None
        now[0] += 61
        assert watch.check() is None
        assert watch.check() is None
    assert asked == [2]
    assert caplog.text.count("rescan") == 1  # said once, however often it is refused
    assert "rescan" in watch.note
    now[0] += 61
    assert watch.check() == "no observer was running"
    assert watch.note.endswith("no observer was running")
    heard.wait_for(write(place / "a.jpg"))
    watch.stop()


def test_a_system_that_has_no_more(place: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when there is not so much as an observer to be had, the program goes on."""

    def refuse() -> BaseObserver:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(room, "Observer", refuse)
    watch = Watch([Root(place, True)], heard)
    watch.start()
    assert watch.check() is None
    watch.stop()


def test_nothing_to_watch(heard: Heard) -> None:
    """Where all inboxes are polled there is no observer, and none is missed."""
    watch = Watch([], heard)
    watch.start()
    assert watch.check() is None
    assert not [thread for thread in threading.enumerate() if "bserver" in type(thread).__name__]
    watch.stop()


# --- what FSEvents says -----------------------------------------------------------------------------------------------

FLAGS = {
    "must_scan_subdirs": 0x1,
    "is_user_dropped": 0x2,
    "is_kernel_dropped": 0x4,
    "is_event_ids_wrapped": 0x8,
    "is_history_done": 0x10,
    "is_root_changed": 0x20,
    "is_mount": 0x40,
    "is_unmount": 0x80,
    "is_created": 0x100,
    "is_removed": 0x200,
    "is_inode_meta_mod": 0x400,
    "is_renamed": 0x800,
    "is_modified": 0x1000,
    "is_item_finder_info_modified": 0x2000,
    "is_owner_change": 0x4000,
    "is_xattr_mod": 0x8000,
    "is_file": 0x10000,
    "is_directory": 0x20000,
    "is_symlink": 0x40000,
    "is_cloned": 0x400000,
}


class NativeEvent:
    def __init__(self, path: str, inode: int | None, flags: int, event_id: int) -> None:
        self.path, self.inode, self.flags, self.event_id = path, inode, flags, event_id

    def __getattr__(self, name: str) -> bool:
        try:
            return bool(self.flags & FLAGS[name])
        except KeyError:
            raise AttributeError(name) from None


class Stream:
    def __init__(self, _paths: object, latency: float = 0.01) -> None:
        self._ended = threading.Event()

    def run(self, _callback: object, started: Callable[[], None]) -> None:
        started()
        self._ended.wait()

    def stop(self) -> None:
        self._ended.set()


@pytest.fixture
def fsevents(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """watchdog's own FSEvents emitter, above a native module that a test drives."""
    native: Any = types.ModuleType("_watchdog_fsevents")
    native.NativeEvent, native.Stream = NativeEvent, Stream
    monkeypatch.setitem(sys.modules, "_watchdog_fsevents", native)
    monkeypatch.delitem(sys.modules, "watchdog.observers.fsevents", raising=False)
    import watchdog.observers.fsevents

    yield watchdog.observers.fsevents
    sys.modules.pop("watchdog.observers.fsevents", None)


Told = tuple[str, str]  # name below the inbox, flags


def drive(fsevents: Any, place: Path, told: list[Told], *, recursive: bool = True) -> list[str]:
    """What is hinted when the system says ``told``."""
    queue = EventQueue()
    emitter = fsevents.FSEventsEmitter(queue, ObservedWatch(str(place), recursive=recursive))
    events = []
    for number, (name, flags) in enumerate(told):
        path = place / name if name else place
        inode = os.lstat(path).st_ino if os.path.lexists(path) else 999_999
        events.append(NativeEvent(str(path), inode, sum(FLAGS[flag] for flag in flags.split()), number))
    emitter.queue_events(1, events)
    heard = Heard()
    handler = room._Hints(heard)
    while not queue.empty():
        handler.dispatch(queue.get()[0])
    return [os.path.relpath(path, place) for path in heard.paths]


@pytest.mark.parametrize(
    ("told", "hinted"),
    [
        pytest.param([("a.jpg", "is_created is_modified is_xattr_mod is_file")], {"a.jpg"}, id="copied"),
        pytest.param([("a.jpg", "is_created is_file is_cloned")], {"a.jpg"}, id="cloned by Finder"),
        pytest.param([("a.jpg", "is_modified is_file")], {"a.jpg"}, id="overwritten in place"),
        pytest.param([("a.jpg", "is_renamed is_file")], {"a.jpg"}, id="renamed into the inbox"),
        pytest.param([(".t", "is_renamed is_file"), ("a.jpg", "is_renamed is_file")], {"a.jpg"}, id="safe-saved"),
        pytest.param([("a.jpg", "is_xattr_mod is_file")], {"a.jpg"}, id="tagged"),
        pytest.param([("a.jpg", "is_inode_meta_mod is_file")], {"a.jpg"}, id="touched"),
        pytest.param([("é.jpg", "is_created is_file")], {"é.jpg"}, id="NFD name"),
        pytest.param([("sub", "is_renamed is_directory")], {"sub", "sub/b.jpg"}, id="folder moved in"),
        pytest.param([("a.jpg", "is_created is_removed is_modified is_file")], {"a.jpg"}, id="removed and made again"),
        # Where FSEvents, or watchdog, is silent only the rescan finds what happened.
        pytest.param([("a.jpg", "is_item_finder_info_modified is_file")], set(), id="Finder's busy mark is gone"),
        pytest.param([("gone.jpg", "is_renamed is_file")], set(), id="moved out"),
        pytest.param([("gone.jpg", "is_removed is_file")], set(), id="deleted"),
        pytest.param([("", "must_scan_subdirs is_kernel_dropped is_directory")], set(), id="events were dropped"),
        pytest.param([("", "must_scan_subdirs is_user_dropped is_directory")], set(), id="events were dropped by us"),
    ],
)
def test_fsevents(fsevents: Any, place: Path, told: list[Told], hinted: set[str]) -> None:
    """Each way that macOS reports a file gives a hint of it, or, for the rows below the line, is known to be silent."""
    (place / "sub").mkdir()
    for name in ("a.jpg", "é.jpg", "sub/b.jpg"):
        (place / name).write_bytes(b"x")
    found = set(drive(fsevents, place, told)) - {"."}
    assert found >= hinted
    assert (not hinted) == (not found)


def test_fsevents_of_a_flat_inbox(fsevents: Any, place: Path) -> None:
    """Without sub-folders their files are not hinted."""
    (place / "sub").mkdir()
    (place / "sub" / "b.jpg").write_bytes(b"x")
    told = [("sub/b.jpg", "is_created is_file"), ("sub", "is_renamed is_directory")]
    assert set(drive(fsevents, place, told, recursive=False)) <= {".", "sub"}


def test_fsevents_loses_its_root(fsevents: Any, place: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer lives on when its emitter has stopped for a moved root: the check does not trust it."""
    monkeypatch.setattr(room, "Observer", fsevents.FSEventsObserver)
    watch = Watch([Root(place, True)], heard)
    watch.start()
    emitter: Any = next(iter(observer_of(watch).emitters))
    emitter.queue_events(1, [NativeEvent(str(place), None, FLAGS["is_root_changed"] | FLAGS["is_directory"], 1)])
    emitter.join(5)
    assert observer_of(watch).is_alive()
    assert watch.check() == "an emitter's thread had ended"
    assert watch.check() is None
    watch.stop()


def test_fsevents_of_a_renamed_root(fsevents: Any, place: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inbox whose path has a decomposed name is watched by the name that it has."""
    monkeypatch.setattr(room, "Observer", fsevents.FSEventsObserver)
    decomposed = place / "é"
    decomposed.mkdir()
    watch = Watch([Root(decomposed, True)], heard)
    watch.start()
    assert watch.check() is None
    watch.stop()
