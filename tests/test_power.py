"""A power cut at every operation: what was not synced is gone, and still nothing is lost, half or doubled.

The layer below stands in for a disk that keeps only what it was told to keep. It notes, for each file, its bytes at the
last sync and, for each folder, its names at the last sync. At every operation it writes down what a machine would find
after losing power there, in two forms: names and bytes dropped alike, and all names kept while unsynced bytes are gone.
The program is then started on each of these states.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import make_picture
from fake_session import FakeSession
from PIL import Image
from rooms import files, settings

from watcher import network
from watcher.daemon import Daemon
from watcher.durable import adding, moving
from watcher.errors import ExitCode
from watcher.session import Shape

NAMES = ("a.png", "a.jpg", "deep/b.png")
MAPS = {"a_depth.png", "a.png_depth.png", "deep/b_depth.png"}
JOURNAL = ("journal.db", "journal.db-wal")


class Disk:
    """Watches every operation below ``root`` and keeps what a power cut before it would leave."""

    def __init__(self, root: Path, keep: Path) -> None:
        self.root, self._keep = root, keep
        self._bytes: dict[int, bytes] = {}  # inode → what was synced
        self._names: dict[str, dict[str, int]] = {}  # folder → name → inode, as synced
        self._folders: set[int] = set()
        self._moves: list[tuple[str, str]] = []  # renames from one folder to another
        self._held: list[int] = []  # open files keep their inode numbers from being used again
        self._lock = threading.Lock()
        self._ours = threading.local()  # what this class writes itself is no operation of the program
        self.cuts: list[Path] = []
        for folder, _, names in os.walk(root):
            self._sync_names(folder)
            for name in names:
                self._sync_bytes(os.path.join(folder, name))

    # -- what the disk was told to keep ---------------------------------------------------------------------------

    def _hold(self, path: str) -> int:
        descriptor = os.open(path, os.O_RDONLY)
        self._held.append(descriptor)
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            self._folders.add(state.st_ino)
        return state.st_ino

    def _sync_bytes(self, path: str) -> None:
        self._bytes[self._hold(path)] = Path(path).read_bytes()

    def _sync_names(self, folder: str) -> None:
        self._names[folder] = {entry.name: self._hold(entry.path) for entry in os.scandir(folder)}
        for old, new in [move for move in self._moves if folder in map(os.path.dirname, move)]:
            # A rename is one step, as on every file system with a journal: no half of it survives without the other.
            self._moves.remove((old, new))
            if os.path.exists(new):
                self._names.setdefault(os.path.dirname(new), {})[os.path.basename(new)] = self._hold(new)
            self._names.get(os.path.dirname(old), {}).pop(os.path.basename(old), None)

    def rename(self, real: Callable[[Path, Path], None], source: Path, target: Path) -> None:
        """In one step, as seen by the threads that sync meanwhile."""
        with self._lock:
            self._ours.busy = True
            try:
                real(source, target)
            finally:
                self._ours.busy = False
            if source.parent != target.parent:
                self._moves.append((str(source), str(target)))

    def synced(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        with self._lock:
            if path.startswith(str(self.root)):
                (self._sync_names if os.path.isdir(path) else self._sync_bytes)(path)

    # -- what a power cut leaves ----------------------------------------------------------------------------------

    def cut(self) -> None:
        if getattr(self._ours, "busy", False):
            return
        with self._lock:
            self._ours.busy = True
            try:
                self._cut()
            finally:
                self._ours.busy = False

    def _cut(self) -> None:
        for all_names in (False, True):
            target = self._keep / f"{len(self.cuts):04d}"
            self._restore(str(self.root), target, all_names)
            state = self.root / "state"
            (target / "state").mkdir(exist_ok=True)
            for name in JOURNAL:  # the journal syncs itself; what it has written may be there or not
                if (state / name).exists():
                    shutil.copyfile(state / name, target / "state" / name)
            self.cuts.append(target)

    def _restore(self, folder: str, target: Path, all_names: bool) -> None:
        target.mkdir()
        now = {entry.name: entry.inode() for entry in os.scandir(folder)} if os.path.isdir(folder) else {}
        for name, inode in (now if all_names else self._names.get(folder, {})).items():
            path = os.path.join(folder, name)
            if inode in self._folders or (all_names and os.path.isdir(path)):
                self._restore(path, target / name, all_names)
            else:
                (target / name).write_bytes(self._bytes.get(inode, b""))
                self._keep_times(inode, target / name)

    def _keep_times(self, inode: int, copy: Path) -> None:
        for descriptor in self._held:
            state = os.fstat(descriptor)
            if state.st_ino == inode:
                os.utime(copy, ns=(state.st_mtime_ns, state.st_mtime_ns))
                return

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Three pictures in an inbox, two of one stem, on the disk that forgets."""
    monkeypatch.setattr(network.Network, "open", lambda _self: FakeSession(Shape(16, 24)))
    root = tmp_path / "disk"
    for name in NAMES:
        make_picture(root / "in" / name)
    for folder in ("out", "processed", "failed", "state"):
        (root / folder).mkdir()
    (tmp_path / "cuts").mkdir()
    made = Disk(root, tmp_path / "cuts")
    with monkeypatch.context() as patch:
        _stand_before(patch, made)
        assert Daemon(settings(root), once=True).run() == ExitCode.DONE
    yield made
    made.close()


def _stand_before(patch: pytest.MonkeyPatch, disk: Disk) -> None:
    """Each operation that changes a disk is a place where the power may go."""

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **kwargs: Any) -> Any:
            disk.cut()
            return real(*args, **kwargs)

        return operation

    def fsync(descriptor: int, real: Callable[[int], None] = os.fsync) -> None:
        disk.cut()
        real(descriptor)
        disk.synced(descriptor)

    def rename_new(source: Path, target: Path, real: Callable[[Path, Path], None] = moving.rename_new) -> None:
        disk.cut()
        disk.rename(real, source, target)

    for name in ("replace", "rename", "unlink", "mkdir", "write"):
        patch.setattr(os, name, before(getattr(os, name)))
    patch.setattr(os, "fsync", fsync)
    patch.setattr(moving, "rename_new", rename_new)
    patch.setattr(adding, "rename_new", rename_new)


def whole(path: Path) -> bool:
    with Image.open(path) as image:
        return np.asarray(image).shape == (48, 64)


def test_a_power_cut_anywhere(disk: Disk, tmp_path: Path) -> None:
    """After any cut, the next start completes everything: each source once, each map whole, each byte still there."""
    originals = {name: make_picture(tmp_path / "fresh" / name).read_bytes() for name in NAMES}
    step = max(1, len(disk.cuts) // int(os.environ.get("POWER_CUTS", "60")))
    assert len(disk.cuts) > 50
    root = disk.root
    for cut in disk.cuts[::step]:
        shutil.rmtree(root)
        shutil.copytree(cut, root)
        left = {path.read_bytes() for path in root.rglob("*") if path.is_file()}
        assert set(originals.values()) <= left, f"{cut.name}: a source was lost"
        assert Daemon(settings(root), once=True).run() == ExitCode.DONE, cut.name
        assert set(files(root / "out")) == MAPS, cut.name
        assert all(whole(root / "out" / name) for name in MAPS), cut.name
        assert files(root / "in") == [], cut.name
        assert {name: (root / "processed" / name).read_bytes() for name in NAMES} == originals, cut.name
