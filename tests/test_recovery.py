"""What the process before us left, and whose fault its end was."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rooms import files, folder

from watcher import durable, recovery
from watcher.folder import Folder
from watcher.frame import Frame
from watcher.journal import Journal
from watcher.recovery import CRASH_FILE, LAST_WORDS_FILE

CRASH = "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n"


@dataclass
class Life:
    place: Path
    folder: Folder
    journal: Journal

    def drop(self, name: str, data: bytes = b"x") -> None:
        (self.place / "in" / name).write_bytes(data)

    def attempt(self, name: str, *, alone: bool = False) -> Frame:
        sighting = self.folder.inbox.sight(str(self.place / "in" / name))
        assert sighting is not None
        assert sighting.source is not None
        return self.folder.attempt(self.journal, sighting.source, alone=alone, patient=True)

    def recover(self, most: int = 3) -> int:
        return recovery.recover(self.journal, [self.folder], self.place / "state", most)

    def state(self, name: str) -> tuple[str, int, int] | None:
        row = self.journal.find(self.folder.settings.inbox, name)
        return None if row is None else (row.state, row.attempts, row.interruptions)

    def crash(self) -> None:
        (self.place / "state" / CRASH_FILE).write_text(CRASH)

    def hang(self, frame: Frame) -> None:
        recovery.say_last_words(self.place / "state", frame, "decoding of a.jpg took longer than 1 s")


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    (tmp_path / "state").mkdir()
    journal = Journal(tmp_path / "state" / "journal.db")
    journal.create()
    yield Life(tmp_path, folder(tmp_path), journal)
    journal.close()


def one_life(life: Life, how: str, *, alone: bool) -> None:
    frame = life.attempt("a.jpg", alone=alone)
    if how == "crash":
        life.crash()
    elif how == "hang":
        life.hang(frame)
    life.recover()


@pytest.mark.parametrize(("how", "code", "lives"), [("crash", "crash", 3), ("hang", "hang", 3), ("kill", "killed", 9)])
def test_the_guilty_one(life: Life, how: str, code: str, lives: int) -> None:
    """A frame that takes the process with it is tried three times in all; one that is only there when somebody
    kills the process is given far more."""
    life.drop("a.jpg")
    for number in range(lives):
        assert life.state("a.jpg") is None or life.state("a.jpg") != ("failed", 3, 0), number
        one_life(life, how, alone=number > 0)
    row = life.journal.find(life.folder.settings.inbox, "a.jpg")
    assert row is not None
    assert row.state == "failed"
    assert row.reason is not None
    assert row.reason["code"] == code
    assert "times" in row.reason["what"]
    if how == "crash":
        assert "Segmentation fault" in row.reason["what"]


@pytest.mark.parametrize(("how", "lives"), [("crash", 2), ("hang", 2), ("kill", 8)])
def test_not_too_soon(life: Life, how: str, lives: int) -> None:
    """One life fewer and the frame is still a suspect."""
    life.drop("a.jpg")
    for number in range(lives):
        one_life(life, how, alone=number > 0)
    found = life.state("a.jpg")
    assert found is not None
    assert found[0] == "held"


def test_a_crash_among_many(life: Life) -> None:
    """Whoever was in hand with others is never given up for it, however often: only a crash alone proves guilt."""
    for name in ("a.jpg", "b.jpg"):
        life.drop(name)
    for _ in range(5):
        for name in ("a.jpg", "b.jpg"):
            life.attempt(name)
        life.crash()
        assert life.recover() == 2
    assert [life.state(name) for name in ("a.jpg", "b.jpg")] == [("held", 5, 0)] * 2


def test_a_hang_has_a_name(life: Life) -> None:
    """Who hung is known, so that the others in hand are not counted as tried."""
    for name in ("a.jpg", "b.jpg"):
        life.drop(name)
    guilty, _other = life.attempt("a.jpg"), life.attempt("b.jpg")
    life.hang(guilty)
    life.recover()
    assert (life.state("a.jpg"), life.state("b.jpg")) == (("held", 1, 0), ("held", 0, 1))


@pytest.mark.parametrize("how", ["hang", "crash alone"])
def test_one_attempt_means_one(life: Life, how: str) -> None:
    """With max_attempts 1 a frame that is known to be guilty has had its chance."""
    life.drop("a.jpg")
    frame = life.attempt("a.jpg", alone=how == "crash alone")
    if how == "hang":
        life.hang(frame)
    else:
        life.crash()
    life.recover(most=1)
    assert life.state("a.jpg") == ("failed", 1, 0)


def test_a_start_without_a_past(life: Life) -> None:
    """Nothing left, nothing done; and evidence is used once."""
    assert life.recover() == 0
    life.drop("a.jpg")
    life.attempt("a.jpg")
    life.crash()
    assert life.recover() == 1
    assert (life.place / "state" / CRASH_FILE).read_bytes() == b""
    life.attempt("a.jpg", alone=True)
    life.recover()
    assert life.state("a.jpg") == ("held", 1, 1)


@pytest.mark.parametrize("words", [b"", b"{", b"[]", b"null", b'{"frame": "x"}', b"\xff"])
def test_damaged_evidence(life: Life, words: bytes) -> None:
    """Last words that were cut short say nothing and stop nothing."""
    (life.place / "state" / LAST_WORDS_FILE).write_bytes(words)
    life.drop("a.jpg")
    life.attempt("a.jpg")
    assert life.recover() == 1
    assert life.state("a.jpg") == ("held", 0, 1)
    assert not (life.place / "state" / LAST_WORDS_FILE).exists()


def test_last_words_never_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full or absent disk does not keep a hung process from ending itself."""
    recovery.say_last_words(tmp_path / "absent", None, "x")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", refuse)
    recovery.say_last_words(tmp_path, None, "x")
    assert files(tmp_path) == []


def test_a_folder_that_left_the_settings(life: Life) -> None:
    """What was in hand for an inbox that is no longer named is given back and bothers nobody."""
    life.drop("a.jpg")
    life.attempt("a.jpg")
    assert recovery.recover(life.journal, [], life.place / "state", 3) == 1
    assert life.state("a.jpg") is None


def failed(life: Life, name: str = "a.jpg") -> Frame:
    """It has failed, and that is all: its file is still in the inbox."""
    life.drop(name, b"broken")
    frame = life.attempt(name)
    life.journal.fail(frame, {"code": "corrupt", "what": "damaged", "attempts": 1})
    return frame


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("explained", [False, True])
@pytest.mark.parametrize("name", ["a.jpg", "a", "x" * 251 + ".jpg"])
def test_a_kill_on_the_way_to_quarantine(life: Life, name: str, explained: bool, coarse: bool) -> None:
    """The source has been moved, and its reason is written or not: afterwards it is, and the journal knows the place.

    So that whoever takes it out of quarantine is not told of it any more; on a volume of coarse times, too.
    """
    frame = failed(life, name)
    (life.place / "failed").mkdir()
    (life.place / "failed" / name).write_bytes(b"an older case")
    place = durable.move_aside(frame.source.path, life.place / "failed", name)
    if coarse:
        seconds = place.stat().st_mtime_ns // (2 * 10**9) * 2 * 10**9
        os.utime(place, ns=(seconds, seconds))
    if explained:
        life.folder.quarantine.explain(place, name, life.folder.settings.inbox, {"code": "corrupt"})
    life.recover()
    assert [case.path for case in life.folder.quarantine.cases()] == [place]
    row = life.journal.find(life.folder.settings.inbox, name)
    assert row is not None
    assert (row.filed, row.place) == (True, str(place))
    place.unlink()
    assert life.journal.tidy(lambda *_: False) == 1
    assert life.journal.counts().failed == 0


def test_a_failure_without_a_file(life: Life) -> None:
    """Quarantine took nothing, and the owner has taken the picture away: nobody is told of it for ever."""
    failed(life).source.path.unlink()
    life.recover()
    assert life.state("a.jpg") is None
    assert life.journal.counts().failed == 0


def test_a_failure_that_was_filed_nowhere(life: Life) -> None:
    """What earlier versions called filed without saying where is looked for, too."""
    for name in ("a.jpg", "b.jpg"):
        life.journal.filed(frame := failed(life, name), "")
        durable.move_aside(frame.source.path, life.place / "failed", name)
    (life.place / "failed" / "b.jpg").unlink()
    life.recover()
    row = life.journal.find(life.folder.settings.inbox, "a.jpg")
    assert row is not None
    assert row.place == str(life.place / "failed" / "a.jpg")
    assert life.state("b.jpg") is None


def test_a_failure_in_a_quarantine_that_is_away(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is neither here nor there, but there cannot be looked at: it stays known."""
    failed(life).source.path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("watcher.folder.absent", lambda folder: folder)
        life.recover()
    assert life.state("a.jpg") == ("failed", 1, 0)
    life.recover()
    assert life.state("a.jpg") is None


def test_a_failure_in_an_inbox_that_cannot_be_looked_at(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error says nothing about whether the file is there."""
    failed(life)
    real = os.lstat

    def refuse(path: Path) -> os.stat_result:
        if str(path).endswith("in/a.jpg"):
            raise PermissionError(errno.EACCES, "no", str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        life.recover()
    assert life.state("a.jpg") == ("failed", 1, 0)


def test_a_kill_before_the_way_to_quarantine(life: Life) -> None:
    """The journal says failed, the source is still in the inbox: intake will file it, so nothing is called filed."""
    failed(life)
    life.recover()
    row = life.journal.find(life.folder.settings.inbox, "a.jpg")
    assert row is not None
    assert not row.filed


def test_a_failure_of_an_inbox_that_is_away(life: Life) -> None:
    """An absent inbox does not say that the source is in quarantine: its tries must not begin anew when it is back."""
    life.drop("a.jpg", b"broken")
    frame = life.attempt("a.jpg")
    life.journal.fail(frame, {"code": "crash", "what": "crashed", "attempts": 3})
    inbox = life.folder.settings.inbox
    inbox.rename(life.place / "elsewhere")
    life.recover()
    (life.place / "elsewhere").rename(inbox)
    row = life.journal.find(inbox, "a.jpg")
    assert row is not None
    assert (row.state, row.filed) == ("failed", False)


def test_no_half_files_are_left(life: Life) -> None:
    """Temporaries of a killed process go from outbox, quarantine and state; others' files stay."""
    left = durable.temporary_name("a.png")
    for place in ("out/sub", "failed", "state"):
        (life.place / place).mkdir(parents=True, exist_ok=True)
        (life.place / place / left).write_bytes(b"half")
    (life.place / "out" / "mine.png").write_bytes(b"whole")
    assert recovery.clean([life.folder], life.place / "state") == 3
    assert [name for name in files(life.place) if "tmp" in name] == []
    assert (life.place / "out" / "mine.png").exists()


def test_no_half_copies_are_left(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processed or failed are on another volume, a killed copy is found there, and in the inbox after retry."""
    left = durable.temporary_name("a.png")
    for place in ("in", "processed/sub"):
        (life.place / place).mkdir(parents=True, exist_ok=True)
        (life.place / place / left).write_bytes(b"half")
    assert recovery.clean([life.folder], life.place / "state") == 0
    monkeypatch.setattr("watcher.recovery.same_volume", lambda *_: False)
    assert recovery.clean([life.folder], life.place / "state") == 2


def test_deletions_are_finished(life: Life) -> None:
    """A source that is done and was put out of reach is gone after the next start, and so is the hidden folder."""
    life.drop("a.jpg")
    life.journal.done(life.attempt("a.jpg"), ["a_depth.png"])
    hidden = durable.out_of_reach(life.place / "in" / "a.jpg")
    (life.place / "in" / hidden.parent.name.replace("-1", "-9")).mkdir(exist_ok=True)
    recovery.finish_deletions(life.journal, [life.folder])
    assert list((life.place / "in").iterdir()) == []


@pytest.mark.parametrize("taken", [False, True])
def test_nothing_new_is_deleted(life: Life, taken: bool) -> None:
    """What was put out of reach in the moment when it was replaced is back in the inbox, whatever has its name now."""
    life.drop("a.jpg")
    life.journal.done(life.attempt("a.jpg"), ["a_depth.png"])
    life.drop("a.jpg", b"shot this morning")
    durable.out_of_reach(life.place / "in" / "a.jpg")
    if taken:
        life.drop("a.jpg", b"shot at noon")
    recovery.finish_deletions(life.journal, [life.folder])
    kept = sorted(path.read_bytes() for path in (life.place / "in").iterdir())
    assert kept == ([b"shot at noon", b"shot this morning"] if taken else [b"shot this morning"])


def test_a_volume_that_is_away(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leftovers on a volume that cannot be looked through wait for another start."""

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr("watcher.recovery.sweep", refuse)
    assert recovery.clean([life.folder], life.place / "state") == 0
