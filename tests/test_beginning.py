"""What the daemon does for itself before it works, and what it says of folders that the system guards."""

from __future__ import annotations

import builtins
import errno
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from watcher import errors, status
from watcher.daemon import beginning, telling


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_file_limit(limits: tuple[int, int]) -> None:
    """launchd's 256 open files become 4096, or what the hard limit allows; a higher limit stays."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    assert beginning.raise_file_limit() == min(4096, limits[1])
    assert beginning.raise_file_limit() == min(4096, limits[1])


@pytest.mark.parametrize(("size", "done"), [(1_000_000, False), (1_000_001, True)])
def test_standard_error_does_not_grow_for_ever(tmp_path: Path, size: int, done: bool) -> None:
    """A long one is emptied in place, since launchd holds it open; what comes next begins at its beginning."""
    file = tmp_path / "agent.err.log"
    file.write_bytes(b"x" * size)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    try:
        assert beginning.shorten(descriptor) is done
        os.write(descriptor, b"next")
    finally:
        os.close(descriptor)
    assert file.stat().st_size == (4 if done else size + 4)


def test_a_pipe_is_left_alone() -> None:
    """Only a file can be shortened."""
    near, far = os.pipe()
    try:
        assert not beginning.shorten(far)
    finally:
        os.close(near)
        os.close(far)


class Guard:
    """Opening any picture fails as the system says; listing works, as under macOS's privacy."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.code = 0
        self.now_s = 0.0
        self.told: dict[str, str] = {}
        real = builtins.open

        def opening(path: Any, *args: Any, **kwargs: Any) -> Any:
            if self.code and str(path).endswith(".png"):
                raise OSError(self.code, os.strerror(self.code), str(path))
            return real(path, *args, **kwargs)

        patch.setattr(builtins, "open", opening)
        patch.setattr(beginning, "now_s", lambda: self.now_s)

    def tell(self, place: str, trouble: str | None) -> None:
        if trouble is None:
            self.told.pop(place, None)
        else:
            self.told[place] = trouble


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    return Guard(monkeypatch)


def test_guarded_inbox(guard: Guard, tmp_path: Path) -> None:
    """Listing works and every file is refused: that is told at the start, asked again later, and taken back."""
    (tmp_path / "a.png").write_bytes(b"x")
    access = beginning.Access([tmp_path], guard.tell)
    guard.code = errno.EPERM
    access.look()
    assert "files in it cannot be read" in guard.told[f"{tmp_path} (access)"]
    guard.code = 0
    guard.now_s = 29
    access.look()
    assert guard.told
    guard.now_s = 31
    access.look()
    assert not guard.told


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ENOENT, errno.EDEADLK])
def test_other_errors_have_their_own_place(guard: Guard, tmp_path: Path, code: int) -> None:
    """Only what a guarding system says counts here."""
    (tmp_path / "a.png").write_bytes(b"x")
    guard.code = code
    beginning.Access([tmp_path, tmp_path / "none"], guard.tell).look()
    assert not guard.told


def test_files_in_the_cloud_are_not_opened(guard: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look must not start a download: a file whose content is elsewhere is passed over by its flags."""
    (tmp_path / "a.png").write_bytes(b"x")
    guard.code = errno.EPERM

    class Entry:
        name = "a.png"
        path = str(tmp_path / "a.png")

        def is_file(self, *, follow_symlinks: bool) -> bool:
            return not follow_symlinks

        def stat(self, *, follow_symlinks: bool) -> SimpleNamespace:
            return SimpleNamespace(st_flags=0 if follow_symlinks else 0x40000000)

    class Listing(list[Entry]):
        def __enter__(self) -> Listing:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", lambda _: Listing([Entry()]))
    assert beginning.refusal(tmp_path) is None


def test_three_meanings_of_a_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A locked file, a folder that macOS guards, and a missing Unix permission have different words and remedies."""
    file = tmp_path / "a.png"
    refused = PermissionError(errno.EPERM, "Operation not permitted", str(file))
    denied = PermissionError(errno.EACCES, "Permission denied", str(file))
    monkeypatch.setattr(errors, "_MAC", True)
    what, remedy = errors.explain(refused)
    assert what == f"macOS refuses access: {file}"
    assert f"enter {os.path.realpath(sys.executable)} " in remedy
    assert "permission is missing" in errors.explain(denied)[0]
    monkeypatch.setattr(os, "lstat", lambda _: SimpleNamespace(st_flags=2))
    what, remedy = errors.explain(refused)
    assert what == f"the file is locked: {file}"
    assert "untick Locked" in remedy
    assert "permission is missing" in errors.explain(denied)[0]


def test_the_line_is_one_line() -> None:
    """What Ctrl-T prints is one readable line, whatever files are called."""
    told = status.Snapshot(state="running", counts=status.Counts(2, 1, 3, 4), in_flight=("a\nb\x1b[2J.png",), rate=1.5)
    assert telling.line(told) == "running: 2 waiting, 1 in work (a?b?[2J.png), 3 done, 4 failed, 1.50 a second"
