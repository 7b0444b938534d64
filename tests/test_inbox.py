"""What counts as a frame, which content it holds, and what happens to it afterwards."""

from __future__ import annotations

import errno
import os
import socket
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from watcher import durable
from watcher import inbox as room
from watcher.errors import SourceChanged, SourceGone, TooLarge
from watcher.frame import Source
from watcher.inbox import Inbox

NFC = unicodedata.normalize("NFC", "é.jpg")
NFD = unicodedata.normalize("NFD", "é.jpg")
ODD = [
    "a b.jpg",
    "-rf.jpg",
    "'\"`$(x).jpg",
    "🙂.jpg",
    "line\nbreak.jpg",
    "x" * 251 + ".jpg",
    "\udcff\udcfe.jpg",
    "..jpg..",
]


@pytest.fixture
def box(tmp_path: Path) -> Inbox:
    made = Inbox(tmp_path / "in", recursive=True, ignore=["*_depth.png", "Ünter*"])
    made.prepare()
    return made


def put(box: Inbox, rel: str, data: bytes = b"picture") -> Path:
    path = box.folder / rel
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def seen(box: Inbox) -> dict[str, Source]:
    return {one.rel: one.source for one in box.scan() if one.source is not None}


def source(box: Inbox, rel: str) -> Source:
    sighting = box.sight(str(box.folder / rel))
    assert sighting is not None
    assert sighting.source is not None
    return sighting.source


# --- what counts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ODD if name != "..jpg.."])
def test_names_of_every_kind(box: Inbox, name: str) -> None:
    """A file is found, read and disposed of by the name that the folder gave, whatever that is."""
    put(box, name)
    put(box, f"sub/{name}")
    for rel in (name, f"sub/{name}"):
        one = seen(box)[rel]
        assert one == source(box, rel)
        assert box.read(one, 100).data == b"picture"
        target = box.dispose(one, "move", box.folder.parent / "processed")
        assert target == box.folder.parent / "processed" / rel
        assert target.read_bytes() == b"picture"
    assert seen(box) == {}


@pytest.mark.parametrize(
    ("rel", "passed"),
    [
        (".hidden.jpg", "hidden"),
        ("._a.jpg", "hidden"),
        (".DS_Store", "hidden"),
        ("..jpg..", "hidden"),
        ("Icon\r", "on the ignore list"),
        ("Thumbs.db", "on the ignore list"),
        ("DESKTOP.INI", "on the ignore list"),
        ("a.jpg.part", "on the ignore list"),
        ("a.jpg.PARTIAL", "on the ignore list"),
        ("a.jpg.crdownload", "on the ignore list"),
        ("a.download", "on the ignore list"),
        ("a.tmp", "on the ignore list"),
        ("a.filepart", "on the ignore list"),
        ("_UNPACK_a.jpg", "on the ignore list"),
        ("a.jpg.icloud", "on the ignore list"),
        ("a.jpg.sb-1a2b3c4d-Xy12Zz", "on the ignore list"),
        ("~$a.jpg", "on the ignore list"),
        ("a_DEPTH.png", "on the ignore list"),
        (unicodedata.normalize("NFD", "ünter.jpg"), "on the ignore list"),
    ],
)
def test_passed_over(box: Inbox, rel: str, passed: str) -> None:
    """What systems, browsers and editors leave about is no frame, by scan and by hint alike, whatever its case."""
    put(box, rel)
    by_scan = [one for one in box.scan() if one.rel == rel]
    by_hint = box.sight(str(box.folder / rel))
    assert by_scan == [by_hint]
    assert by_hint is not None
    assert (by_hint.source, by_hint.passed) == (None, passed)


@pytest.mark.parametrize("folder", [".git", "@eaDir", "Photos.photoslibrary", "Edit.FCPBUNDLE", "x.download"])
def test_folders_left_alone(box: Inbox, folder: str) -> None:
    """The insides of hidden folders and of packages are nobody's frames."""
    path = put(box, f"{folder}/deep/a.jpg")
    assert seen(box) == {}
    assert box.sight(str(path)) is None


def not_files(folder: Path) -> list[str]:
    (folder / "outside.jpg").symlink_to("/etc/hostname")
    (folder / "inside.jpg").symlink_to("real.jpg")
    (folder / "dangling.jpg").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "fifo.jpg")
    made = ["outside.jpg", "inside.jpg", "dangling.jpg", "loop", "fifo.jpg"]
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(folder)  # the path of a socket has a short limit
        try:
            listening.bind("socket.jpg")
        finally:
            os.chdir(here)
    return [*made, "socket.jpg"]


def test_not_a_regular_file(box: Inbox) -> None:
    """Links, pipes and sockets are never opened; a folder called x.jpg is a folder; a hard link is a file."""
    put(box, "real.jpg")
    put(box, "x.jpg/a.jpg")
    odd = not_files(box.folder)
    os.link(box.folder / "real.jpg", box.folder / "twin.jpg")
    assert sorted(seen(box)) == ["real.jpg", "twin.jpg", "x.jpg/a.jpg"]
    assert {one.rel for one in box.scan() if one.passed == "not a regular file"} == set(odd)
    for name in odd:
        sighting = box.sight(str(box.folder / name))
        assert sighting is not None
        assert sighting.source is None


def test_hard_links_are_disposed_of_one_by_one(box: Inbox) -> None:
    """Two names of one file are two sources; putting one away leaves the other, and both arrive."""
    put(box, "a.jpg")
    os.link(box.folder / "a.jpg", box.folder / "b.jpg")
    for name in ("a.jpg", "b.jpg"):
        box.dispose(source(box, name), "move", box.folder.parent / "processed")
    assert seen(box) == {}
    assert sorted(os.listdir(box.folder.parent / "processed")) == ["a.jpg", "b.jpg"]


def test_not_recursive(tmp_path: Path) -> None:
    """Without sub-folders only the inbox's own files count, also by hint."""
    box = Inbox(tmp_path, recursive=False)
    put(box, "a.jpg")
    deep = put(box, "sub/b.jpg")
    assert list(seen(box)) == ["a.jpg"]
    assert box.sight(str(deep)) is None


def test_scan_of_a_part(box: Inbox) -> None:
    """A folder that was moved in can be looked through alone."""
    put(box, "a.jpg")
    put(box, "sub/deep/b.jpg")
    assert [one.rel for one in box.scan("sub")] == ["sub/deep/b.jpg"]


@pytest.mark.parametrize(
    ("path", "rel"),
    [("in", ""), ("in/a.jpg", "a.jpg"), ("in/sub/a.jpg", "sub/a.jpg"), ("inside/a.jpg", None), ("", None)],
)
def test_relative(box: Inbox, path: str, rel: str | None) -> None:
    """A hint from elsewhere is not ours, though its path begins alike."""
    assert box.relative(str(box.folder.parent / path)) == rel


def test_an_inbox_behind_a_link(tmp_path: Path) -> None:
    """Events carry the real path; the same file is the same source by either."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    box = Inbox(tmp_path / "link", recursive=True)
    put(box, "a.jpg")
    assert box.sight(str(tmp_path / "real" / "a.jpg")) == box.sight(str(tmp_path / "link" / "a.jpg"))
    assert box.sight(str(tmp_path / "real" / "a.jpg")) is not None


# --- trouble ----------------------------------------------------------------------------------------------------------


def failing(folder: Path, code: int) -> Callable[[Any], Any]:
    real = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path) == folder:
            raise OSError(code, os.strerror(code), str(path))
        return real(path)

    return scandir


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOENT])
def test_an_inbox_that_cannot_be_read_is_not_empty(box: Inbox, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A refusal is told as such."""
    monkeypatch.setattr(os, "scandir", failing(box.root, code))
    with pytest.raises(OSError, match=os.strerror(code)):
        list(box.scan())


def test_a_sub_folder_in_trouble(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """One unreadable folder is told and does not hide the others."""
    put(box, "bad/a.jpg")
    put(box, "good/b.jpg")
    monkeypatch.setattr(os, "scandir", failing(box.root / "bad", errno.EACCES))
    found = list(box.scan())
    assert [one.rel for one in found if one.source] == ["good/b.jpg"]
    assert [(one.rel, one.trouble.errno) for one in found if one.trouble is not None] == [("bad", errno.EACCES)]


@pytest.mark.parametrize("code", [errno.ENOENT, errno.ENOTDIR])
def test_a_sub_folder_that_was_taken_away(box: Inbox, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A folder that goes while it is looked through is no trouble."""
    put(box, "bad/a.jpg")
    put(box, "good/b.jpg")
    monkeypatch.setattr(os, "scandir", failing(box.root / "bad", code))
    assert [one.rel for one in box.scan()] == ["good/b.jpg"]


def test_an_inbox_that_is_gone(box: Inbox) -> None:
    """A missing inbox raises, at every look."""
    list(box.scan())
    box.folder.rmdir()
    with pytest.raises(FileNotFoundError):
        list(box.scan())


def test_not_downloaded(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A placeholder of a cloud is told, not opened: opening would start a download, or hang."""
    put(box, "a.jpg")

    class State:
        st_flags = room._DATALESS
        st_mode, st_size, st_mtime_ns, st_dev, st_ino = 0o100644, 7, 1, 1, 1

    monkeypatch.setattr(os, "lstat", lambda _: State())
    sighting = box.sight(str(box.folder / "a.jpg"))
    assert sighting is not None
    assert sighting.trouble is not None
    assert sighting.trouble.errno == errno.EDEADLK


@pytest.mark.parametrize(("birth_s", "copying"), [(443779200, True), (1_700_000_000, False)])
def test_finder_at_work(box: Inbox, monkeypatch: pytest.MonkeyPatch, birth_s: int, copying: bool) -> None:
    """Finder dates a file that it is still copying decades back."""

    class State:
        st_birthtime = birth_s
        st_mode, st_size, st_mtime_ns, st_dev, st_ino = 0o100644, 7, 1, 1, 1

    monkeypatch.setattr(os, "lstat", lambda _: State())
    sighting = box.sight(str(box.folder / "a.jpg"))
    assert sighting is not None
    assert sighting.copying is copying


# --- keys -------------------------------------------------------------------------------------------------------------


def test_one_file_in_two_spellings(box: Inbox) -> None:
    """A file seen as NFD in one event and NFC in another has one key; it is opened by the folder's own spelling."""
    put(box, NFD)
    one = source(box, NFD)
    assert one.key == NFC
    assert one.rel == NFD
    assert box.read(one, 100).data == b"picture"


def test_two_files_in_two_spellings(box: Inbox) -> None:
    """A volume that tells the spellings apart holds two sources."""
    put(box, NFC, b"1")
    put(box, NFD, b"2")
    if len(os.listdir(box.folder)) == 1:
        pytest.skip("this volume does not tell them apart")
    keys = {one.key for one in seen(box).values()}
    assert len(keys) == 2
    assert keys <= {*box.keys(NFC), *box.keys(NFD)}


@pytest.mark.parametrize("folds", [True, False])
def test_case_twins(box: Inbox, folds: bool) -> None:
    """A.JPG and a.jpg have one key exactly where the volume takes them for one file."""
    box._folds = folds
    put(box, "A.JPG")
    assert (source(box, "A.JPG").key == "a.jpg") is folds


# --- taking -----------------------------------------------------------------------------------------------------------


def replace_with(data: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        other = path.with_name(".other")
        other.write_bytes(data)
        os.replace(other, path)

    return change


def swapped_for_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def swapped_for_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES = {
    "grown": lambda path: path.write_bytes(b"picture and more"),
    "shrunk": lambda path: path.write_bytes(b"p"),
    "replaced": replace_with(b"PICTURE"),
    "touched": lambda path: os.utime(path, ns=(1, 1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_only_the_sighted_content_is_read(box: Inbox, change: Callable[[Path], None]) -> None:
    """A file that is no longer what was sighted is not read as if it were, nor disposed of."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    change(path)
    with pytest.raises(SourceChanged):
        box.read(one, 100)
    for after in ("move", "delete"):
        with pytest.raises(SourceChanged):
            box.dispose(one, after, box.folder.parent / "processed")
    assert path.exists()
    assert box.dispose(one, "keep", box.folder.parent / "processed") is None


def test_changed_while_it_is_read(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The identity is compared again after the last byte."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    real = os.fstat
    looks = iter([0, 1])

    def fstat(descriptor: int) -> os.stat_result:
        state = real(descriptor)
        if next(looks, 1) == 0:
            os.utime(path, ns=(1, 1))
        return state

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(SourceChanged):
        box.read(one, 100)


@pytest.mark.parametrize("swap", [swapped_for_a_link, swapped_for_a_pipe])
def test_swapped_for_something_else(box: Inbox, swap: Callable[[Path], None]) -> None:
    """A source that became a link or a pipe is neither followed nor waited on."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    swap(path)
    with pytest.raises((SourceChanged, OSError)):
        box.read(one, 100)
    with pytest.raises(SourceChanged):
        box.dispose(one, "delete", box.folder)
    assert os.path.lexists(path)


def test_taken_away(box: Inbox) -> None:
    """A source whose owner took it away is gone, which is no error when it is disposed of."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    path.unlink()
    with pytest.raises(SourceGone):
        box.read(one, 100)
    for after in ("move", "delete"):
        assert box.dispose(one, after, box.folder.parent / "processed") is None


def test_too_large(box: Inbox) -> None:
    """A file over the limit is refused before it is opened."""
    put(box, "a.jpg", b"12345")
    one = source(box, "a.jpg")
    assert box.read(one, 5).data == b"12345"
    with pytest.raises(TooLarge, match="limit"):
        box.read(one, 4)


def test_read_says_which_content(box: Inbox) -> None:
    """The hash is that of the bytes."""
    put(box, "a.jpg", b"abc")
    taken = box.read(source(box, "a.jpg"), 100)
    assert taken.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# --- disposing --------------------------------------------------------------------------------------------------------


def test_dispose(box: Inbox) -> None:
    """Move, keep and delete do what they say; sub-folders are mirrored; nothing is overwritten."""
    processed = box.folder.parent / "processed"
    for number in range(2):
        put(box, "sub/a.jpg", str(number).encode())
        box.dispose(source(box, "sub/a.jpg"), "move", processed)
    assert (processed / "sub" / "a.jpg").read_bytes() == b"0"
    assert (processed / "sub" / "a (2).jpg").read_bytes() == b"1"
    kept, deleted = put(box, "k.jpg"), put(box, "d.jpg")
    box.dispose(source(box, "k.jpg"), "keep", processed)
    box.dispose(source(box, "d.jpg"), "delete", processed)
    assert kept.exists()
    assert not deleted.exists()


def test_replaced_at_the_last_moment(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """New content that comes between our look and the rename goes back to where it was dropped."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    real = durable.move_aside

    def late(source: Path, folder: Path, name: str, content: tuple[int, int]) -> Path:
        replace_with(b"new content")(path)
        return real(source, folder, name, content)

    monkeypatch.setattr("watcher.inbox.move_aside", late)
    with pytest.raises(SourceChanged):
        box.dispose(one, "move", box.folder.parent / "processed")
    assert path.read_bytes() == b"new content"
    assert os.listdir(box.folder.parent / "processed") == []


def test_replaced_at_the_last_moment_before_deleting(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content that nobody has looked at is never deleted, whenever it came."""
    path = put(box, "a.jpg")
    one = source(box, "a.jpg")
    real = durable.rename_new

    def late(old: Path, new: Path) -> None:
        if old == path:
            replace_with(b"new content")(path)
        real(old, new)

    monkeypatch.setattr("watcher.durable.removing.rename_new", late)
    with pytest.raises(SourceChanged):
        box.dispose(one, "delete", box.folder.parent / "processed")
    assert path.read_bytes() == b"new content"
    assert os.listdir(box.folder) == ["a.jpg"]


def test_lock_names(tmp_path: Path) -> None:
    """One inbox has one lock, by whatever path it is named; two inboxes have two."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    assert room.lock_name(tmp_path / "in") == room.lock_name(tmp_path / "link")
    assert room.lock_name(tmp_path / "in") != room.lock_name(tmp_path)


def test_scan_holds_no_list(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is read as it is asked for: a hundred thousand files are never in memory at once."""
    read = 0
    real = os.scandir

    class Counting:
        def __init__(self, path: Any) -> None:
            self._entries = real(path)

        def __enter__(self) -> Counting:
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            nonlocal read
            for entry in self._entries:
                read += 1
                yield entry

    for number in range(20):
        put(box, f"{number}.jpg")
    monkeypatch.setattr(os, "scandir", Counting)
    scan = box.scan()
    next(scan)
    assert read == 1
    scan.close()  # type: ignore[attr-defined]
