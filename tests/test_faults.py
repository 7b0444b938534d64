"""Errno is not blame: whatever the system says about a file, at whatever place, the picture is not at fault.

Each test lets one place fail once with every error number of the table, each time for another picture, and then lets
the whole life of a daemon run its course.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import make_picture
from fake_session import FakeSession
from rooms import files, settings

from watcher import errors, inbox, network, quarantine
from watcher.daemon import Daemon
from watcher.durable import moving, writing
from watcher.errors import ExitCode
from watcher.session import Shape
from watcher.status import Snapshot

WAITED_FOR = tuple(sorted(errors.explained()))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that costs nothing, and no long pauses between tries."""
    monkeypatch.setattr(network.Network, "open", lambda _self: FakeSession(Shape(16, 24)))
    monkeypatch.setattr("watcher.finisher._RETRY_FIRST_S", 0.01)
    monkeypatch.setattr("watcher.backlog._BACK_OFF_FIRST_S", 0.01)
    monkeypatch.setattr("watcher.intake.looking._AGAIN_S", 0.01)
    monkeypatch.setattr("watcher.daemon._ONCE_STUCK_S", 60.0)


class Fault:
    """Stands before a function and fails once for each picture, each time with another error number."""

    def __init__(self, real: Callable[..., Any], numbers: tuple[int, ...]) -> None:
        self._real, self._left, self.told = real, {name_of(number): number for number in numbers}, list[int]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for name, number in list(self._left.items()):
            if any(name in str(getattr(arg, "path", arg)) for arg in args if not isinstance(arg, bytes)):
                del self._left[name]
                self.told.append(number)
                raise OSError(number, os.strerror(number), name)
        return self._real(*args, **kwargs)


def name_of(number: int) -> str:
    return f"picture-{errno.errorcode[number]}-"


def run(place: Path, **overrides: Any) -> int:
    """Drop a picture for each error number, run until nothing is left; returns the exit code."""

    def tell(snapshot: Snapshot) -> None:
        assert snapshot.counts.failed == 0

    for number in WAITED_FOR:
        make_picture(place / "in" / f"{name_of(number)}.png")
    return Daemon(settings(place, watch__rescan_s=1, **overrides), once=True, tell=tell).run()


def check_all_done(place: Path, code: int, fault: Fault) -> None:
    assert sorted(fault.told) == sorted(WAITED_FOR)  # every number was really met
    assert code == ExitCode.DONE
    assert files(place / "out") == sorted(f"{name_of(number)}_depth.png" for number in WAITED_FOR)
    assert files(place / "in") == []
    assert files(place / "failed") == []
    assert files(place / "processed") == sorted(f"{name_of(number)}.png" for number in WAITED_FOR)


def test_reading_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that cannot be opened now stays in the inbox and is done later, uncounted."""
    fault = Fault(inbox.open_source, WAITED_FOR)
    monkeypatch.setattr(inbox, "open_source", fault)
    code = run(tmp_path)
    check_all_done(tmp_path, code, fault)


def test_looking_at_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source whose bytes cannot be looked at yet waits in the inbox."""
    fault = Fault(inbox.open_source, WAITED_FOR)
    monkeypatch.setattr("watcher.intake.pace.open_source", fault)
    code = run(tmp_path, watch__settle_s=0.1)
    check_all_done(tmp_path, code, fault)


def test_writing_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A map that cannot be written keeps its frame in hand; the state is degraded and says why."""
    fault = Fault(writing.write_new, WAITED_FOR)
    monkeypatch.setattr(writing, "write_new", fault)
    code = run(tmp_path)
    check_all_done(tmp_path, code, fault)
    for what, _ in errors.explained().values():
        assert f"cannot be written: {what}" in caplog.text


def test_a_full_outbox_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it is tried, and by how many threads: one line when maps cannot be written, one when they can."""
    left = [60]

    def full(path: Path, data: bytes, **kwargs: Any) -> None:
        if path.parent == tmp_path / "out" and left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        writing_new(path, data, **kwargs)

    writing_new = writing.write_new
    monkeypatch.setattr(writing, "write_new", full)
    monkeypatch.setattr("watcher.finisher._RETRY_MOST_S", 0.01)
    caplog.set_level("INFO")
    assert run(tmp_path) == ExitCode.DONE
    said = [record.getMessage() for record in caplog.records if record.name == "watcher.course"]
    assert len(said) == 2, said
    assert "maps cannot be written: the disk is full" in said[0]
    assert "all right again" in said[1]


@pytest.mark.parametrize("after", ["move", "delete"])
def test_sources_that_cannot_be_put_away_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, after: str
) -> None:
    """Nineteen pictures whose maps are done, and one full volume: one line, and another when it is over."""
    left = [60]
    real = inbox.Inbox.dispose

    def dispose(self: inbox.Inbox, *args: Any) -> Path | None:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ENOSPC, "No space left on device", str(args[0].path))
        return real(self, *args)

    monkeypatch.setattr(inbox.Inbox, "dispose", dispose)
    caplog.set_level("INFO")
    assert run(tmp_path, folder__after=after) in (ExitCode.DONE, ExitCode.TRY_LATER)
    said = [record.getMessage() for record in caplog.records if record.name == "watcher.course"]
    assert len(said) <= 2, said
    assert "pictures whose maps are done cannot be put away: the disk is full" in said[0]


def test_a_quarantine_that_takes_nothing_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Broken pictures stay in the inbox while their folder is full; one line says so, whatever their number."""

    def admit(self: quarantine.Quarantine, source: Path, *_: Any) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device", str(source))

    monkeypatch.setattr(quarantine.Quarantine, "admit", admit)
    for number in range(5):
        path = make_picture(tmp_path / "in" / f"{number}.png")
        path.write_bytes(path.read_bytes()[:60] + b"\xff" * 30 + path.read_bytes()[90:])
    made = Daemon(settings(tmp_path, watch__rescan_s=1), once=True)
    assert made.run() == ExitCode.TRY_LATER
    said = [record.getMessage() for record in caplog.records if "stay in the inbox" in record.getMessage()]
    assert len(said) == 1, said
    assert len(files(tmp_path / "in")) == 5


def test_putting_a_source_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that cannot be moved is not done twice; it is moved later."""
    fault = Fault(moving.rename_new, WAITED_FOR)
    monkeypatch.setattr(moving, "rename_new", fault)
    run(tmp_path)
    code = Daemon(settings(tmp_path), once=True).run()
    check_all_done(tmp_path, code, fault)


@pytest.mark.parametrize("number", WAITED_FOR, ids=errno.errorcode.get)
def test_an_inbox_that_cannot_be_listed(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never taken for an empty one: the state is degraded, and all is done when it can be read again."""
    make_picture(tmp_path / "in" / "a.png")
    real = os.scandir
    told: list[int] = []

    def scandir(path: Any) -> Any:
        if str(path).rstrip("/").endswith("/in") and not told:
            told.append(number)
            raise OSError(number, os.strerror(number), str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert Daemon(settings(tmp_path, watch__rescan_s=1), once=True).run() == ExitCode.DONE
    assert told == [number]
    assert files(tmp_path / "out") == ["a_depth.png"]
