"""Files are whole or absent, a move never loses or overwrites, a lock ends with its process."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from watcher import durable
from watcher.durable import moving, syncing, writing

LONG = "é" * 125 + ".jpg"  # 254 bytes


def raising(code: int) -> Callable[..., Any]:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return refuse


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source and target are on two volumes: the system refuses to rename between different folders."""
    real = moving._exclusive

    def exclusive(source: bytes, target: bytes) -> int:
        return errno.EXDEV if os.path.dirname(source) != os.path.dirname(target) else real(source, target)

    monkeypatch.setattr(moving, "_exclusive", exclusive)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.png", LONG, "line\nbreak.png", "-rf", "\udcff.png", "e\u0301.png", "🙂.png"])
@pytest.mark.parametrize("data", [b"", b"x", b"0123456789" * 250_000])
def test_write_whole_any_name(tmp_path: Path, name: str, data: bytes) -> None:
    """A file of any name and size is there as it was meant, and nothing else is."""
    durable.write_whole(tmp_path / name, data)
    assert (tmp_path / name).read_bytes() == data
    assert names(tmp_path) == [name]


def test_write_whole_replaces(tmp_path: Path) -> None:
    """A newer file takes the place of the old one, with its mode."""
    target = tmp_path / "a"
    target.write_bytes(b"old and longer")
    durable.write_whole(target, memoryview(b"new"), mode=0o600)
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
@pytest.mark.parametrize("code", [0, errno.ENOTSUP])
def test_add_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, code: int) -> None:
    """A new file is whole as well, and whatever has its name stays, also on a volume that cannot refuse by itself."""
    if code:
        monkeypatch.setattr(moving, "_exclusive", lambda *_: code)
    durable.add_whole(tmp_path / "new", b"data")
    assert (tmp_path / "new").read_bytes() == b"data"
    place = tmp_path / "a"
    if there == "file":
        place.touch()
    elif there == "folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    with pytest.raises(FileExistsError) as caught:
        durable.add_whole(place, b"data")
    assert caught.value.filename == str(place)
    assert names(tmp_path) == ["a", "new"]
    assert place.is_symlink() or place.is_dir() or place.read_bytes() == b""


@pytest.mark.parametrize(
    ("module", "step"),
    [(os, "open"), (os, "write"), (os, "fsync"), (os, "fstat"), (os, "pread"), (os, "replace")],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_write_whole_fails_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, code: int
) -> None:
    """Whichever step fails, the old file is untouched and no hidden one is left."""
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(module, step, raising(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            durable.write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes a few bytes at a time gets them all."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:3])))
    durable.write_whole(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


@pytest.mark.parametrize("lie", [b"0123X56789", b"01234"], ids=["flipped", "short"])
def test_a_disk_that_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: bytes) -> None:
    """What is on disk is compared with what was meant before it gets its name."""
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        real(descriptor, lie)
        return len(data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match=r"differs|another length"):
        durable.write_whole(tmp_path / "a", b"0123456789")
    assert names(tmp_path) == []


def test_the_order_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes are synced before the name appears, and the name after it."""
    seen: list[str] = []
    real_sync, real_replace = syncing.sync_file, os.replace

    def sync(descriptor: int) -> None:
        seen.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    def replace(source: Path, target: Path) -> None:
        seen.append("name")
        real_replace(source, target)

    monkeypatch.setattr(writing, "sync_file", sync)
    monkeypatch.setattr(syncing, "sync_file", sync)
    monkeypatch.setattr(os, "replace", replace)
    durable.write_whole(tmp_path / "a", b"x")
    assert seen == ["file", "name", "folder"]
    seen.clear()
    durable.write_whole(tmp_path / "a", b"x", durable=False)
    assert seen == ["name"]


def test_write_new_never_touches(tmp_path: Path) -> None:
    """A new file is never written over an old one, nor through a link."""
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("there", "link"):
        with pytest.raises(FileExistsError):
            durable.write_new(tmp_path / name, b"new")
    assert (tmp_path / "there").read_bytes() == b"old"
    assert not (tmp_path / "elsewhere").exists()


# --- syncing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(syncing.REFUSED))
def test_sync_that_a_volume_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A network volume that refuses to sync does not stop the work."""
    monkeypatch.setattr(os, "fsync", raising(code))
    durable.write_whole(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize(("full", "fell_back"), [(None, 0), (errno.ENOTSUP, 1), (errno.ENOTTY, 1)])
def test_full_sync_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int | None, fell_back: int) -> None:
    """Where the system knows a sync through the drive's cache, it is used; the plain one only where it is refused."""
    asked: list[int] = []
    plain: list[int] = []

    def control(descriptor: int, command: int) -> None:
        asked.append(command)
        if full is not None:
            raise OSError(full, "refused")

    monkeypatch.setattr(syncing, "_F_FULLFSYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    with (tmp_path / "a").open("wb") as file:
        durable.sync_file(file.fileno())
    assert (asked, len(plain)) == ([51], fell_back)


def test_full_sync_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drive that cannot write is not taken for one that knows no sync."""
    monkeypatch.setattr(syncing, "_F_FULLFSYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", raising(errno.EIO))
    with (tmp_path / "a").open("wb") as file, pytest.raises(OSError, match=os.strerror(errno.EIO)):
        durable.sync_file(file.fileno())


def test_make_folder_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new folder is synced into its parent; making it again is harmless."""
    synced: list[Path] = []
    monkeypatch.setattr(syncing, "sync_folder", synced.append)
    durable.make_folder(tmp_path / "a" / "b")
    durable.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [tmp_path, tmp_path / "a"]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jpg", LONG, "x" * 255, "\udcff" * 255, "🙂" * 63])
def test_temporary_names(name: str) -> None:
    """A temporary name is hidden, fits, is known as one, and is never given twice."""
    first, second = durable.temporary_name(name), durable.temporary_name(name)
    assert first != second
    for temporary in (first, second):
        assert temporary.startswith(".")
        assert len(os.fsencode(temporary)) <= durable.NAME_BYTES
        assert durable.is_temporary(temporary)


@pytest.mark.parametrize("name", ["a.tmp-1-2", ".a.tmp-x-2", ".a.tmp", ".tmp-1-2", ".a.tmp-1-2.png"])
def test_not_temporary(name: str) -> None:
    """Nobody else's file is taken for one of ours."""
    assert not durable.is_temporary(name)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("a.jpg", "a (2).jpg"),
        ("a", "a (2)"),
        (".hidden", ".hidden (2)"),
        ("a.b.jpg", "a.b (2).jpg"),
        ("a (2).jpg", "a (2) (2).jpg"),
    ],
)
def test_numbered(name: str, second: str) -> None:
    """The number stands before the extension."""
    candidates = durable.numbered(name)
    assert [next(candidates), next(candidates)] == [name, second]


@pytest.mark.parametrize("name", ["x" * 251 + ".jpg", LONG, "🙂" * 62 + ".heic", "x" * 255])
def test_numbered_names_fit(name: str) -> None:
    """However long a name is, its numbered sisters fit, differ and keep the extension."""
    candidates = durable.numbered(name)
    found = [next(candidates) for _ in range(1200)]
    assert len(set(found)) == len(found)
    assert all(len(os.fsencode(candidate)) <= durable.NAME_BYTES for candidate in found)
    assert {os.path.splitext(candidate)[1] for candidate in found} == {os.path.splitext(name)[1]}


# --- moving -----------------------------------------------------------------------------------------------------------


def test_move_aside_never_overwrites(tmp_path: Path) -> None:
    """Each file of one name finds its own place."""
    for number in range(3):
        source = tmp_path / "a.jpg"
        source.write_bytes(str(number).encode())
        durable.move_aside(source, tmp_path / "to" / "deep", "a.jpg")
    place = tmp_path / "to" / "deep"
    assert {p.name: p.read_bytes() for p in place.iterdir()} == {
        "a.jpg": b"0",
        "a (2).jpg": b"1",
        "a (3).jpg": b"2",
    }


def test_rename_new_refuses_links_and_folders(tmp_path: Path) -> None:
    """A dangling link or a folder under the name counts as taken."""
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    os.link(tmp_path / "a", tmp_path / "twin")
    for name in ("link", "folder", "twin"):
        with pytest.raises(FileExistsError):
            durable.rename_new(tmp_path / "a", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == b"a"


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.ENOTSUP])
def test_rename_new_without_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A volume that has no exclusive rename is still never made to overwrite."""
    monkeypatch.setattr(moving, "_exclusive", lambda *_: code)
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        durable.rename_new(tmp_path / "a", tmp_path / "b")
    durable.rename_new(tmp_path / "a", tmp_path / "c")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"b": b"b", "c": b"a"}


def test_rename_new_says_what_is_wrong(tmp_path: Path) -> None:
    """A source that is gone is told as such."""
    with pytest.raises(FileNotFoundError):
        durable.rename_new(tmp_path / "gone", tmp_path / "a")


def test_no_exclusive_rename_in_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old system library is no error."""
    monkeypatch.setattr(ctypes, "CDLL", lambda *_args, **_kwargs: object())
    assert moving._exclusive(b"a", b"b") == errno.ENOSYS


@pytest.mark.usefixtures("across")
class TestAcrossVolumes:
    """``processed`` or ``failed`` on another volume than the inbox."""

    def test_copy_then_remove(self, tmp_path: Path) -> None:
        """The file arrives with bytes, mode and times, beside what was there; its source goes."""
        source = tmp_path / "a.jpg"
        source.write_bytes(b"picture" * 300_000)
        source.chmod(0o640)
        os.utime(source, ns=(1_000_000_001, 1_600_000_000_123_456_789))
        place = tmp_path / "to"
        place.mkdir()
        (place / "a.jpg").write_bytes(b"other")
        target = durable.move_aside(source, place, "a.jpg")
        assert target == place / "a (2).jpg"
        assert target.read_bytes() == b"picture" * 300_000
        assert target.stat().st_mtime_ns == 1_600_000_000_123_456_789
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        assert not source.exists()
        assert names(place) == ["a (2).jpg", "a.jpg"]

    def test_changed_while_it_was_copied(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A source that is written to meanwhile stays, and no half copy does."""
        source = tmp_path / "a.jpg"
        source.write_bytes(b"one")
        real = durable.sync_file

        def sync(descriptor: int) -> None:
            real(descriptor)
            source.write_bytes(b"longer")

        monkeypatch.setattr("watcher.durable.moving.sync_file", sync)
        with pytest.raises(OSError, match="changed"):
            durable.move_aside(source, tmp_path / "to", "a.jpg")
        assert source.read_bytes() == b"longer"
        assert names(tmp_path / "to") == []

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
    def test_no_room_for_the_copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        """When the copy fails the source stays and nothing hidden does."""
        source = tmp_path / "a.jpg"
        source.write_bytes(b"one")
        monkeypatch.setattr("watcher.durable.moving.sync_file", raising(code))
        with pytest.raises(OSError, match=os.strerror(code)):
            durable.move_aside(source, tmp_path / "to", "a.jpg")
        assert source.read_bytes() == b"one"
        assert names(tmp_path / "to") == []

    def test_killed_between_copy_and_removal(self, tmp_path: Path) -> None:
        """The same content that is there already is not put there a second time."""
        source, place = tmp_path / "a.jpg", tmp_path / "to"
        source.write_bytes(b"one")
        place.mkdir()
        (place / "a.jpg").write_bytes(b"one")
        state = source.stat()
        os.utime(place / "a.jpg", ns=(state.st_atime_ns, state.st_mtime_ns))
        assert durable.move_aside(source, place, "a.jpg") == place / "a.jpg"
        assert names(place) == ["a.jpg"]
        assert not source.exists()

    def test_changed_beside_an_older_copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A copy that was there before is not taken back because the source changed meanwhile."""
        source, place = tmp_path / "a.jpg", tmp_path / "to"
        source.write_bytes(b"one")
        place.mkdir()
        (place / "a.jpg").write_bytes(b"one")
        state = source.stat()
        os.utime(place / "a.jpg", ns=(state.st_atime_ns, state.st_mtime_ns))
        real = durable.sync_folder

        def sync(folder: Path) -> None:
            real(folder)
            source.write_bytes(b"longer")

        monkeypatch.setattr("watcher.durable.moving.sync_folder", sync)
        with pytest.raises(OSError, match="changed"):
            durable.move_aside(source, place, "a.jpg")
        assert (place / "a.jpg").read_bytes() == b"one"
        assert source.read_bytes() == b"longer"

    @pytest.mark.parametrize("there", [b"two", b"longer"])
    def test_other_content_of_that_name(self, tmp_path: Path, there: bytes) -> None:
        """A file of the same name and time but other bytes is no copy."""
        source, place = tmp_path / "a.jpg", tmp_path / "to"
        source.write_bytes(b"one")
        place.mkdir()
        (place / "a.jpg").write_bytes(there)
        state = source.stat()
        os.utime(place / "a.jpg", ns=(state.st_atime_ns, state.st_mtime_ns))
        assert durable.move_aside(source, place, "a.jpg") == place / "a (2).jpg"
        assert (place / "a.jpg").read_bytes() == there


@pytest.fixture
def other_volume() -> Iterator[Path]:
    place = Path("/dev/shm")
    if not place.is_dir() or not os.access(place, os.W_OK):
        pytest.skip("no second volume to write to")
    import tempfile

    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def test_a_real_second_volume(tmp_path: Path, other_volume: Path) -> None:
    """The move works between two real volumes."""
    if tmp_path.stat().st_dev == other_volume.stat().st_dev:
        pytest.skip("both folders are on one volume")
    source = tmp_path / "line\nbreak \udcff.jpg"
    source.write_bytes(b"x" * 3_000_000)
    target = durable.move_aside(source, other_volume, source.name)
    assert target.read_bytes() == b"x" * 3_000_000
    assert not source.exists()
    assert names(other_volume) == [source.name]


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that are set become whole seconds, as on a volume that keeps no finer ones."""
    real = os.utime

    def utime(path: int, ns: tuple[int, int]) -> None:
        real(path, ns=(ns[0] // 10**9 * 10**9, ns[1] // 10**9 * 10**9))

    monkeypatch.setattr("watcher.durable.moving.os.utime", utime)


def content_of(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@pytest.mark.usefixtures("coarse")
def test_a_volume_that_keeps_times_less_exactly(tmp_path: Path, other_volume: Path) -> None:
    """What was moved is known by what it was in its old place: another time in the new one is no other content."""
    source = tmp_path / "a.jpg"
    source.write_bytes(b"content")
    os.utime(source, ns=(10**18 + 1, 10**18 + 123_456_789))
    target = durable.move_aside(source, other_volume, "a.jpg", content_of(source))
    assert target.read_bytes() == b"content"
    assert target.stat().st_mtime_ns == 10**18
    assert not source.exists()


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_another_content_stays(
    tmp_path: Path, other_volume: Path, monkeypatch: pytest.MonkeyPatch, across: bool, again: bool
) -> None:
    """What is not meant stays where it was dropped, on every volume; if even newer content came, beside that."""
    folder, place = tmp_path / "inbox", other_volume if across else tmp_path / "to"
    folder.mkdir()
    source = folder / "a.jpg"
    source.write_bytes(b"old")
    meant = content_of(source)
    source.write_bytes(b"newer")
    if again and not across:  # between the rename and the look at what was renamed
        real = os.lstat

        def lstat(path: Path) -> os.stat_result:
            if path == place / "a.jpg" and not os.path.exists(source):
                source.write_bytes(b"the newest")
            return real(path)

        monkeypatch.setattr("watcher.durable.moving.os.lstat", lstat)
    with pytest.raises(durable.Replaced):
        durable.move_aside(source, place, "a.jpg", meant)
    kept = sorted(path.read_bytes() for path in folder.iterdir())
    assert kept == ([b"newer", b"the newest"] if again and not across else [b"newer"])
    assert names(place) == []


# --- what a kill leaves -----------------------------------------------------------------------------------------------


def test_sweep(tmp_path: Path) -> None:
    """What dead processes left half is removed, at any depth; the rest stays."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead, living, ours = int(ended.stdout), os.getppid(), os.getpid()
    gone = [f".a.tmp-{dead}-1", f".b\nc.tmp-{dead}-22", f".a.tmp-{ours}-7"]
    kept = [f".a.tmp-{living}-1", "a.png", ".hidden", f"a.tmp-{dead}-1"]
    for name in [*gone, *kept]:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / gone[0]).write_bytes(b"")
    assert durable.sweep(tmp_path, recursive=False) == 3
    assert names(tmp_path / "deep") == gone[:1]
    assert durable.sweep(tmp_path, recursive=True) == 1
    assert names(tmp_path) == sorted([*kept, "deep"])
    assert durable.sweep(tmp_path / "absent", recursive=True) == 0


# --- locks ------------------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
from watcher.durable import Lock
lock = Lock(Path(sys.argv[1]))
assert lock.take("4711 run since yesterday")
print("held", flush=True)
sys.stdin.read()
"""


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    """A lock says who holds it, keeps others out, and is free after kill -9."""
    path = tmp_path / "state" / "lock"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            assert durable.holder(path) == "4711 run since yesterday"
            assert not durable.Lock(path).take("mine")
            assert durable.holder(path) == "4711 run since yesterday"
        finally:
            child.kill()
            child.wait()
    assert durable.holder(path) is None
    lock = durable.Lock(path)
    assert lock.take("mine")
    assert durable.holder(path) == "mine"
    lock.give_back()
    lock.give_back()
    assert durable.holder(path) is None


def test_looking_at_a_lock_is_no_holding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who asks at that very moment who holds the lock does not keep a daemon from starting."""
    real = fcntl.flock
    refusals = iter([True, True, False])

    def flock(descriptor: int, how: int) -> None:
        if how & fcntl.LOCK_EX and next(refusals, False):
            raise BlockingIOError(errno.EWOULDBLOCK, "held for a look")
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = durable.Lock(tmp_path / "lock")
    assert lock.take("mine")
    lock.give_back()


def test_lock_of_a_volume_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is not "held" is not taken for it."""
    monkeypatch.setattr(fcntl, "flock", raising(errno.ENOLCK))
    with pytest.raises(OSError, match=os.strerror(errno.ENOLCK)):
        durable.Lock(tmp_path / "lock").take("mine")
