"""Volumes that fill up, turn read-only, vanish and come back, for real, under a running daemon.

Needs root and loop devices; skipped where a machine gives neither.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from conftest import Home, RunCli, StartCli, make_picture
from waiting import until


class Disk:
    """An ext4 file system in a file, mounted at ``point``; what lies in the point itself shows when it is away."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.image, self.point = folder / "disk.img", folder / "disk"
        self.point.mkdir()
        with self.image.open("wb") as file:
            file.truncate(megabytes << 20)
        _system("mkfs.ext4", "-q", "-F", self.image)

    def mount(self, *options: str) -> None:
        _system("mount", "-o", ",".join(("loop", *options)), self.image, self.point)

    def remount(self, mode: str) -> None:
        until(lambda: _tries("mount", "-o", f"remount,{mode}", self.point), what=f"remount {mode}")

    def unmount(self) -> None:
        until(lambda: not os.path.ismount(self.point) or _tries("umount", self.point), what="unmount")


def _system(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def _tries(*words: str | Path) -> bool:
    return subprocess.run([str(word) for word in words], check=False, capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("mounting a volume of our own needs root and mkfs.ext4")
    made = Disk(tmp_path, 96)
    try:
        made.mount()
    except subprocess.CalledProcessError:
        pytest.skip("this machine does not let us mount a loop device")
    yield made
    made.unmount()


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration whose folders lie where the test says; state and quarantine stay on the main disk."""

    def write(inbox: Path, outbox: Path, processed: Path) -> Path:
        folder = {"inbox": inbox, "outbox": outbox, "processed": processed, "failed": tmp_path / "failed"}
        settings = {
            "folders": [{key: str(path) for key, path in folder.items()}],
            "state_dir": str(tmp_path / "state"),
            "watch": {"rescan_s": 1},
        }
        file = tmp_path / "config.yaml"
        file.write_text(json.dumps(settings))
        return file

    return write


class Running:
    """A daemon, and what it says of itself."""

    def __init__(self, start: StartCli, ask: RunCli, config: Path) -> None:
        self._ask, self._config = ask, config
        self.process = start("run", "--config", config)
        until(lambda: self.status()["state"] in ("running", "degraded"), what="start")

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._ask("status", "--json", "--config", self._config).stdout)
        counts = found["counts"]
        assert counts["seen"] == sum(value for name, value in counts.items() if name != "seen")
        return found

    def until(self, state: str, *, done: int | None = None) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.status()
            return found if found["state"] == state and done in (None, found["counts"]["done"]) else None

        found = until(look, seconds=60, what=f"state {state}, done {done}")
        assert found is not None
        return found

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(10) == 0


def drop(inbox: Path, names: range, size: tuple[int, int] = (64, 48)) -> None:
    for number in names:
        make_picture(inbox.parent / f".staged-{number}.png", size).rename(inbox / f"{number}.png")


def fill(file: BinaryIO) -> None:
    while True:
        file.write(bytes(1 << 20))


def maps_in(outbox: Path) -> set[str]:
    return {path.name for path in outbox.iterdir()}


def expected(names: range) -> set[str]:
    return {f"{number}_depth.png" for number in names}


def test_an_inbox_that_vanishes_and_returns(
    disk: Disk, place: Callable[..., Path], tmp_path: Path, home: Home, start_cli: StartCli, run_cli: RunCli
) -> None:
    """An unmounted inbox is never an empty one and never made anew; when it is back, what lay in it is done."""
    inbox, outbox = disk.point / "inbox", tmp_path / "outbox"
    inbox.mkdir()
    daemon = Running(start_cli, run_cli, place(inbox, outbox, disk.point / "processed"))
    drop(inbox, range(3))
    daemon.until("running", done=3)
    disk.unmount()
    assert "volume is not there" in daemon.until("degraded")["reason"]
    assert list(disk.point.iterdir()) == []
    disk.mount()
    drop(inbox, range(3, 6))
    daemon.until("running", done=6)
    assert maps_in(outbox) == expected(range(6))
    assert list(inbox.iterdir()) == []
    daemon.stop()


def test_an_outbox_that_vanishes_and_returns(
    disk: Disk, place: Callable[..., Path], tmp_path: Path, home: Home, start_cli: StartCli, run_cli: RunCli
) -> None:
    """Nothing is written to the mount point of an absent volume; sources stay until their map is on the volume."""
    inbox, outbox = tmp_path / "inbox", disk.point / "outbox"
    inbox.mkdir()
    daemon = Running(start_cli, run_cli, place(inbox, outbox, tmp_path / "processed"))
    drop(inbox, range(1))
    daemon.until("running", done=1)
    disk.unmount()
    drop(inbox, range(1, 30))
    assert "volume is not there" in daemon.until("degraded")["reason"]
    assert list(disk.point.iterdir()) == []
    assert {path.name for path in inbox.iterdir()} == {f"{number}.png" for number in range(1, 30)}
    disk.mount()
    daemon.until("running", done=30)
    assert maps_in(outbox) == expected(range(30))
    assert list(inbox.iterdir()) == []
    daemon.stop()


def test_an_outbox_that_turns_read_only(
    disk: Disk, place: Callable[..., Path], tmp_path: Path, home: Home, start_cli: StartCli, run_cli: RunCli
) -> None:
    """A read-only outbox holds frames back, says so, and is nobody's failure; writable again, all is done."""
    inbox, outbox = tmp_path / "inbox", disk.point / "outbox"
    inbox.mkdir()
    daemon = Running(start_cli, run_cli, place(inbox, outbox, tmp_path / "processed"))
    drop(inbox, range(1))
    daemon.until("running", done=1)
    disk.remount("ro")
    drop(inbox, range(1, 5))
    assert "read-only" in daemon.until("degraded")["reason"]
    disk.remount("rw")
    daemon.until("running", done=5)
    assert maps_in(outbox) == expected(range(5))
    assert not (tmp_path / "failed").exists() or list((tmp_path / "failed").iterdir()) == []
    daemon.stop()


def test_an_outbox_that_fills_up(
    disk: Disk, place: Callable[..., Path], tmp_path: Path, home: Home, start_cli: StartCli, run_cli: RunCli
) -> None:
    """A full outbox gets no half map and loses no source; with room again, work goes on by itself."""
    inbox, outbox = tmp_path / "inbox", disk.point / "outbox"
    inbox.mkdir()
    daemon = Running(start_cli, run_cli, place(inbox, outbox, tmp_path / "processed"))
    ballast = disk.point / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        fill(file)
    drop(inbox, range(4), (640, 480))
    assert "full" in daemon.until("degraded")["reason"]
    assert maps_in(outbox) == set()
    ballast.unlink()
    daemon.until("running", done=4)
    assert maps_in(outbox) == expected(range(4))
    daemon.stop()


def test_processed_on_another_volume(
    disk: Disk, place: Callable[..., Path], tmp_path: Path, home: Home, start_cli: StartCli, run_cli: RunCli
) -> None:
    """Across volumes a source is copied, compared and only then removed; its times go with it."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    daemon = Running(start_cli, run_cli, place(inbox, tmp_path / "outbox", disk.point / "processed"))
    original = make_picture(tmp_path / "stage" / "0.png")
    os.utime(original, ns=(1_600_000_000_123_456_789, 1_600_000_000_123_456_789))
    data = original.read_bytes()
    original.rename(inbox / "0.png")
    daemon.until("running", done=1)
    moved = disk.point / "processed" / "0.png"
    until(moved.exists)
    assert moved.read_bytes() == data
    assert moved.stat().st_mtime_ns == 1_600_000_000_123_456_789
    until(lambda: list(inbox.iterdir()) == [])
    daemon.stop()
