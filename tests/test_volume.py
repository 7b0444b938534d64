"""A folder is only itself while its volume is there."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from watcher import volume
from watcher.volume import Anchor


class Disks:
    """Which device each folder is on, as ``os.stat`` tells it: the longest mount point above a path decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mounts: dict[Path, int]) -> None:
        self.mounts = mounts
        self._stat = os.stat
        monkeypatch.setattr(os, "stat", self._told)

    def _told(self, path: str | Path, **options: bool) -> os.stat_result:
        state = self._stat(path, **options)
        above = [point for point in self.mounts if Path(path).is_relative_to(point)]
        if not above:
            return state
        values = list(state)
        values[2] = self.mounts[max(above, key=lambda point: len(point.parts))]
        return os.stat_result(values)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Disks, Path]:
    """A volume that is mounted on ``tmp_path/mnt``."""
    point = tmp_path / "mnt"
    point.mkdir()
    return Disks(monkeypatch, {tmp_path: 1, point: 2}), point


def test_create(tmp_path: Path) -> None:
    """A missing folder is made with its parents; an existing one is left as it is."""
    Anchor(tmp_path / "a" / "b").create()
    (tmp_path / "a" / "b" / "c").write_bytes(b"")
    Anchor(tmp_path / "a" / "b").create()
    assert (tmp_path / "a" / "b" / "c").exists()


def test_a_folder_that_was_thrown_away_comes_back(tmp_path: Path) -> None:
    """People throw the whole outbox into the bin; while its volume is there, it is simply made again."""
    anchor = Anchor(tmp_path / "out")
    anchor.create()
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        anchor.check()
    anchor.create()
    assert (tmp_path / "out").is_dir()
    anchor.check()


def test_thrown_away_on_another_volume(disk: tuple[Disks, Path]) -> None:
    """The same on a volume that is still mounted."""
    _, point = disk
    anchor = Anchor(point / "out")
    anchor.create()
    (point / "out").rmdir()
    anchor.create()
    assert (point / "out").is_dir()


@pytest.mark.parametrize("inside", [".", "out", "deep/out"])
def test_unmounted(disk: tuple[Disks, Path], inside: str) -> None:
    """An empty mount point is never taken for the folder, and nothing is made on it; mounted again, all is well."""
    disks, point = disk
    anchor = Anchor(point / inside)
    anchor.create()
    for step in (point / inside, *(point / inside).parents):
        if step.is_relative_to(point) and step != point:
            step.rmdir()
    del disks.mounts[point]
    for ask in (anchor.check, anchor.create):
        with pytest.raises(OSError, match=r"not mounted|No such file"):
            ask()
    assert list(point.iterdir()) == []
    disks.mounts[point] = 3  # another number after each mount
    if inside != ".":
        (point / inside).mkdir(parents=True)
    anchor.check()


def test_the_mount_point_itself_is_gone(disk: tuple[Disks, Path]) -> None:
    """macOS removes the mount point with the volume; it is not made anew on the disk beneath."""
    disks, point = disk
    anchor = Anchor(point / "out")
    anchor.create()
    shutil.rmtree(point)
    del disks.mounts[point]
    for ask in (anchor.check, anchor.create):
        with pytest.raises(OSError, match=r"not mounted|No such file"):
            ask()
    assert not point.exists()


@pytest.mark.parametrize(
    ("folder", "mounted", "absent"),
    [
        ("Volumes/Card/in", [], "Volumes/Card"),
        ("Volumes/Card/in", ["Volumes/Card"], None),
        ("Volumes/Card", [], "Volumes/Card"),
        ("media/me/card/in", [], "media/me/card"),
        ("media/me/card/in", ["media/me/card"], None),
        ("home/in", [], None),
    ],
)
def test_a_volume_that_was_never_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, mounted: list[str], absent: str | None
) -> None:
    """At the first start too: where volumes are mounted, a folder is made only below a mount point."""
    monkeypatch.setattr(volume, "_MOUNTS", (tmp_path / "Volumes", tmp_path / "media"))
    monkeypatch.setattr(os.path, "ismount", lambda path: str(Path(path).relative_to(tmp_path)) in mounted)
    anchor = Anchor(tmp_path / folder)
    if absent is None:
        anchor.create()
        assert (tmp_path / folder).is_dir()
        return
    with pytest.raises(OSError, match="not mounted") as caught:
        anchor.create()
    assert caught.value.errno == errno.ENXIO
    assert caught.value.filename == str(tmp_path / absent)
    assert not (tmp_path / folder).exists()


def test_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether names differ by case is asked of the volume itself; unsure means that they do."""
    folder = tmp_path / "Folder"
    folder.mkdir()
    assert not volume.ignores_case(folder)
    (tmp_path / "fOLDER").mkdir()
    assert not volume.ignores_case(folder)
    (tmp_path / "fOLDER").rmdir()
    (tmp_path / "fOLDER").symlink_to(folder)
    assert volume.ignores_case(folder)
    assert not volume.ignores_case(Path("/"))
    assert not volume.ignores_case(tmp_path / "123")


def test_free_bytes(tmp_path: Path) -> None:
    """The room on the volume is what the system says; a folder that is not there is an error."""
    assert 0 < volume.free_bytes(tmp_path) <= shutil.disk_usage(tmp_path).total
    with pytest.raises(FileNotFoundError):
        volume.free_bytes(tmp_path / "absent")


@pytest.mark.parametrize(
    ("lines", "folder", "kind"),
    [
        (["1 0 8:1 / / rw - ext4 /dev/sda rw"], "/home/in", "ext4"),
        (["1 0 8:1 / / rw - ext4 x rw", "2 1 0:9 / /mnt/nas rw shared:1 - nfs4 s:/ rw"], "/mnt/nas/in", "nfs4"),
        (["1 0 8:1 / / rw - ext4 x rw", "2 1 0:9 / /mnt/nas rw - nfs4 s:/ rw"], "/mnt/nasty", "ext4"),
        (["1 0 8:1 / / rw - ext4 x rw", r"2 1 0:9 / /mnt/my\040nas rw - cifs s rw"], "/mnt/my nas/in", "cifs"),
        (["1 0 8:1 / / rw - ext4 x rw", r"2 1 0:9 / /mnt/ü\040nas rw - cifs s rw"], "/mnt/ü nas/in", "cifs"),
        (["2 1 0:9 / /a rw - nfs s rw", "3 2 0:10 / /a rw - tmpfs t rw"], "/a/in", "tmpfs"),
    ],
)
def test_kind_of_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], folder: str, kind: str
) -> None:
    """The innermost, newest mount that holds a folder says what it is; blanks and umlauts are no obstacle."""
    table = tmp_path / "mountinfo"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    real = open

    def told(path: object, *args: Any, **options: Any) -> Any:
        return real(table if "mountinfo" in str(path) else path, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", told)
    assert volume._linux_type(Path(folder)) == kind


def test_network_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local folder is local; where nothing can be learnt the answer is local too."""
    assert not volume.is_network(tmp_path)
    monkeypatch.setattr(volume, "_linux_type", lambda _: "smb3")
    assert volume.is_network(tmp_path)

    def refuse(_: Path) -> str:
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(volume, "_linux_type", refuse)
    assert not volume.is_network(tmp_path)
