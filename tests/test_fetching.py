"""Files that are only in iCloud: never opened where work is done, fetched only on request. Flags are faked on Linux."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Home, make_picture
from waiting import until

from watcher import config, daemon, darwin, fetching, inbox, status
from watcher.doctor import places
from watcher.errors import ExitCode
from watcher.fetching import Fetcher


class Desk:
    """A fetcher, and what it has said. Files are pipes: opening one blocks until somebody writes, as iCloud does."""

    def __init__(self) -> None:
        self.told: dict[str, str | None] = {}
        self.arrived: list[str] = []
        self.fetcher = Fetcher(self.told.__setitem__, self.arrived.append)
        self.fetcher.start()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    assert made.fetcher.stop(5)


def pipe(place: Path, name: str) -> Path:
    os.mkfifo(place / name)
    return place / name


def let_come(path: Path) -> None:
    """What iCloud does in the end."""
    path.write_bytes(b"x")


def test_one_at_a_time(desk: Desk, tmp_path: Path) -> None:
    """However many are wanted, one is read; each is read once, in its turn; and asking never blocks."""
    pipes = [pipe(tmp_path, name) for name in "abc"]
    for _ in range(3):
        assert all(desk.fetcher.want(path) for path in pipes)
    assert bool(desk.fetcher.busy)
    for number, path in enumerate(pipes):
        until(lambda path=path: desk.fetcher._now == path)  # type: ignore[misc]
        assert len(desk.arrived) == number
        let_come(path)
        until(lambda number=number: len(desk.arrived) == number + 1)  # type: ignore[misc]
    assert desk.arrived == [str(path) for path in pipes]
    until(lambda: not desk.fetcher.busy)
    assert desk.fetcher.fetched == 3


def test_busy_until_it_has_arrived(tmp_path: Path) -> None:
    """Whoever asks whether anything will still come hears yes until the file has been announced."""
    busy: list[bool] = []
    fetcher = Fetcher(lambda *_: None, lambda _: busy.append(fetcher.busy), on=True)
    fetcher.start()
    (tmp_path / "a").write_bytes(b"x")
    assert fetcher.want(tmp_path / "a")
    until(lambda: not fetcher.busy)
    assert busy == [True]
    assert fetcher.stop(5)


def test_one_that_cannot_be_fetched(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is told, the file is left alone for a minute, and then asked for again."""
    clock = [1000.0]
    monkeypatch.setattr(fetching, "now_s", lambda: clock[0])
    monkeypatch.setattr(Fetcher, "_read", lambda _, path: OSError(errno.EDEADLK, "no", str(path)))
    assert desk.fetcher.want(tmp_path / "a")
    until(lambda: desk.fetcher.failed == 1 and not desk.fetcher.busy)
    until(lambda: "could not be fetched" in (desk.told.get(str(tmp_path / "a")) or ""))
    assert not desk.fetcher.want(tmp_path / "a")
    clock[0] += 61
    assert desk.fetcher.want(tmp_path / "a")
    until(lambda: desk.fetcher.failed == 2)
    assert desk.arrived == []


def test_one_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the deadline it is told, nobody waits for it any more, and a stop does not either."""
    clock = [1000.0]
    monkeypatch.setattr(fetching, "now_s", lambda: clock[0])
    desk, path = Desk(), pipe(tmp_path, "a")
    desk.fetcher.want(path)
    desk.fetcher.want(pipe(tmp_path, "b"))
    until(lambda: desk.fetcher._begun_s is not None)
    desk.fetcher.look()
    assert (desk.told, desk.fetcher.busy) == ({}, True)
    clock[0] += fetching.DEADLINE_S + 1
    desk.fetcher.look()
    assert "has not come from iCloud for 900 s" in str(desk.told[str(path)])
    assert not desk.fetcher.busy
    assert not desk.fetcher.stop(0.01)
    let_come(path)
    assert desk.fetcher.stop(5)
    assert desk.fetcher.fetched == 1  # at a stop the others are left for the next start


def test_off() -> None:
    """Without the setting there is no thread, and nothing is wanted."""
    before = threading.active_count()
    fetcher = Fetcher(lambda *_: None, lambda _: None, on=False)
    fetcher.start()
    assert not fetcher.want(Path("/nowhere"))
    assert threading.active_count() == before
    assert fetcher.stop(0)


def test_elsewhere_nothing_is_asked() -> None:
    """The call that lets a thread download exists on a Mac only."""
    assert darwin.allow_downloads() is False
    assert darwin.download_policy() == -1


# -- in the daemon ------------------------------------------------------------------------------------------------

Absent = set[int]


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Absent:
    """The numbers of files that are only in iCloud; the fetcher's read brings them in."""
    away: Absent = set()
    monkeypatch.setattr(inbox, "is_dataless", lambda state: state.st_ino in away)

    def bring(_: Fetcher, path: Path) -> None:
        assert threading.current_thread().name == "fetcher"
        away.discard(os.stat(path).st_ino)

    monkeypatch.setattr(Fetcher, "_read", bring)
    return away


@pytest.fixture
def once(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, status.Snapshot]]:
    monkeypatch.setattr(daemon, "_ONCE_STUCK_S", 0.5)

    def run(*, fetch: bool) -> tuple[int, status.Snapshot]:
        file = tmp_path / "c.yaml"
        file.write_text(
            "folders: [{inbox: in, outbox: out}]\nstate_dir: state\n"
            f"watch: {{fetch_dataless: {str(fetch).lower()}}}\n"
        )
        code = daemon.Daemon(config.load(file), once=True).run()
        return code, status.read(tmp_path / "state")

    return run


def test_fetched_on_request(absent: Absent, once: Callable[..., tuple[int, status.Snapshot]], tmp_path: Path) -> None:
    """With the setting the file is brought in by the fetcher's thread and becomes a map like the other."""
    absent.add(os.stat(make_picture(tmp_path / "in" / "cloud.png")).st_ino)
    make_picture(tmp_path / "in" / "here.png")
    code, told = once(fetch=True)
    assert (code, told.counts.done) == (ExitCode.DONE, 2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cloud_depth.png", "here_depth.png"]


def test_left_alone_without(absent: Absent, once: Callable[..., tuple[int, status.Snapshot]], tmp_path: Path) -> None:
    """Without it the file is named, never opened, and nobody waits for it: the other becomes a map."""
    absent.add(os.stat(make_picture(tmp_path / "in" / "cloud.png")).st_ino)
    make_picture(tmp_path / "in" / "here.png")
    code, told = once(fetch=False)
    assert (code, told.counts.done, len(absent)) == (ExitCode.TRY_LATER, 1, 1)
    assert "cloud.png" in told.reason
    assert "has not been downloaded" in told.reason
    assert "fetch_dataless" in told.reason


def test_doctor_opens_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor tries a file that is here; one that is not would be downloaded by trying it."""
    picture = make_picture(tmp_path / "a.png")
    with os.scandir(tmp_path) as entries:
        (entry,) = entries
    assert places._is_here(entry)
    monkeypatch.setattr(places, "is_dataless", lambda state: state.st_ino == os.stat(picture).st_ino)
    assert not places._is_here(entry)
